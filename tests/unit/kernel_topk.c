/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "k3_kernel.h"

static void expect(const float *s, size_t n, size_t k, const uint32_t *want)
{
    uint32_t got[16];
    k3_topk(s, n, k, got);
    for (size_t i = 0; i < k; i++)
        cr_assert_eq(got[i], want[i], "place %zu: %u, not %u", i, got[i], want[i]);
}

/* Routing must not depend on the order of a scan or a heap: equal scores go by index. */
Test(kernel_topk, ties_go_to_the_lowest_index)
{
    expect((float[]){1, 2, 2, 0, 2, 2}, 6, 3, (uint32_t[]){1, 2, 4});
    expect((float[]){5, 5, 5, 5}, 4, 4, (uint32_t[]){0, 1, 2, 3});
    expect((float[]){-0.0f, 0.0f, 1}, 3, 3, (uint32_t[]){2, 0, 1}); /* the zeros are equal */
}

Test(kernel_topk, the_whole_range_counts)
{
    expect((float[]){3}, 1, 1, (uint32_t[]){0});
    expect((float[]){0, 1, 2, 3, 9}, 5, 1, (uint32_t[]){4});
    expect((float[]){9, 1, 2, 3, 4}, 5, 5, (uint32_t[]){0, 4, 3, 2, 1});
    expect((float[]){-INFINITY, -3, INFINITY}, 3, 2, (uint32_t[]){2, 1});
}

/* A NaN score must not displace a number, wherever it stands. */
Test(kernel_topk, nan_is_last)
{
    expect((float[]){NAN, 1, NAN, -INFINITY, 2}, 5, 5, (uint32_t[]){4, 1, 3, 0, 2});
    expect((float[]){1, NAN, NAN}, 3, 1, (uint32_t[]){0});
}

Test(kernel_topk, agrees_with_repeated_maximum)
{
    float s[896];
    uint32_t got[16];
    srand(7);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 896; i++)
            s[i] = (float)(rand() % 300);
        k3_topk(s, 896, 16, got);
        for (int j = 0; j < 16; j++) {
            int best = 0;
            for (int i = 1; i < 896; i++)
                best = s[i] > s[best] ? i : best;
            cr_assert_eq(got[j], (uint32_t)best);
            s[best] = -1;
        }
    }
}
