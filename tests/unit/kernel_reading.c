/* SPDX-License-Identifier: Apache-2.0 */
/* Which way of reading weights is taken. */
#include <criterion/criterion.h>

#include "k3_kernel.h"

/* Two starts whose times differ by noise must agree: the usual way stays unless another is clearly faster. */
Test(kernel_reading, the_usual_unless_clearly_slower)
{
    cr_expect_eq(k3_reading_better((const double[]){1.0}, 1), 0);
    cr_expect_eq(k3_reading_better((const double[]){1.0, 0.98, 1.2}, 3), 0);
    cr_expect_eq(k3_reading_better((const double[]){1.0, 0.94, 1.2}, 3), 1);
    cr_expect_eq(k3_reading_better((const double[]){1.0, 0.9, 0.5}, 3), 2);
    cr_expect_eq(k3_reading_better((const double[]){1.0, 1.1, 1.2}, 3), 0);
}

Test(kernel_reading, kept_lines_are_not_passed_by)
{
    k3_reading r = {K3_HINT_NTA, 4096, 2};
    k3_reading kept = k3_reading_kept(r);
    cr_expect(kept.hint == K3_HINT_T0 && kept.distance == 4096 && kept.streams == 2);
    r.hint = K3_HINT_NONE;
    cr_expect_eq(k3_reading_kept(r).hint, K3_HINT_NONE);
}

/* Without the memory for it nothing is measured; with little of it something valid comes out. */
Test(kernel_reading, measured_or_usual)
{
    k3_reading r;
    cr_expect(!k3_reading_measure(k3_kernels_available(0), NULL, 1 << 20, &r));
    cr_expect_eq(r.hint, k3_reading_usual().hint);
    const k3_kernels *k = k3_kernels_select(NULL, NULL);
    cr_assert(k3_reading_measure(k, NULL, 20 << 20, &r));
    cr_expect(r.hint <= K3_HINT_NTA && r.streams <= 4);
}
