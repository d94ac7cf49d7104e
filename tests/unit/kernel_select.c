/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "k3_kernel.h"

/* A misspelt K3_ISA that silently ran the best path would make every comparison of paths pass. */
Test(kernel_select, unknown_is_refused_with_the_choices)
{
    k3_err err = {0};
    cr_assert_null(k3_kernels_select("sse9", &err));
    cr_assert_eq(err.status, K3_EUSAGE);
    cr_assert(strstr(err.text, "sse9") && strstr(err.text, "scalar"), "%s", err.text);
    setenv("K3_ISA", "avx5", 1);
    cr_assert_null(k3_kernels_select(NULL, &err));
    cr_assert(strstr(err.text, "K3_ISA=avx5"), "%s", err.text);
}

Test(kernel_select, environment_counts_only_without_an_argument)
{
    setenv("K3_ISA", "scalar", 1);
    cr_assert_str_eq(k3_kernels_select(NULL, NULL)->name, "scalar");
    for (int i = 0; k3_kernels_available(i); i++) {
        const k3_kernels *k = k3_kernels_available(i);
        cr_assert_eq(k3_kernels_select(k->name, NULL), k);
    }
}

Test(kernel_select, unset_or_empty_gives_the_best)
{
    int last = 0;
    while (k3_kernels_available(last + 1))
        last++;
    unsetenv("K3_ISA");
    cr_assert_eq(k3_kernels_select(NULL, NULL), k3_kernels_available(last));
    setenv("K3_ISA", "", 1);
    cr_assert_eq(k3_kernels_select(NULL, NULL), k3_kernels_available(last));
    cr_assert_null(k3_kernels_select("", NULL));
}
