/* SPDX-License-Identifier: Apache-2.0 */
#include "k3_kernel.h"

/* Whether a score goes before another that has a lower index. */
static bool before(float a, float b)
{
    return a > b || (b != b && a == a);
}

void k3_topk(const float *s, size_t n, size_t k, uint32_t *index)
{
    size_t have = 0;
    for (size_t i = 0; i < n; i++) {
        if (have == k && (k == 0 || !before(s[i], s[index[k - 1]])))
            continue;
        size_t at = have < k ? have++ : k - 1;
        for (; at > 0 && before(s[i], s[index[at - 1]]); at--)
            index[at] = index[at - 1];
        index[at] = (uint32_t)i;
    }
}
