/* SPDX-License-Identifier: Apache-2.0 */
/* kernels.inc.h - the kernels, once, over the v16 of the including file. */

/* n <= 16 elements; absent ones load as +0. */
INLINE v16 load_part(const float *p, size_t n)
{
    return n < 16 ? v_load_n(p, n) : v_load(p);
}

INLINE void store_part(float *p, v16 v, size_t n)
{
    if (n < 16)
        v_store_n(p, v, n);
    else
        v_store(p, v);
}

#include "math.inc.h"
#include "mm.inc.h"
#include "compact.inc.h"
#include "gemm.inc.h"
#include "product.inc.h"
#include "tmm.inc.h"
#include "vector.inc.h"

const k3_kernels TABLE = {
    .name = TABLE_NAME,
    .mm_bf16 = mm_bf16,
    .mm_f32 = mm_f32,
    .mm_mxfp4 = mm_mxfp4,
    .mm_compact = mm_compact,
    .compact_decode = compact_rows_decode,
    .mxfp4_split = mxfp4_split,
    .mxfp4_decode = mxfp4_decode,
    .dot = dot,
    .tmm_bf16 = tmm_bf16,
    .tmm_f32 = tmm_f32,
    .tmm_f32_multi = tmm_f32_multi,
    .widen_bf16 = widen_bf16,
    .rmsnorm = rmsnorm,
    .l2norm = l2norm,
    .situ = situ,
    .silu = silu,
    .exp = exp_n,
    .tanh = tanh_n,
    .sigmoid = sigmoid_n,
    .mul_sigmoid = mul_sigmoid,
    .decay = decay,
    .conv_silu = conv_silu,
    .max = max_n,
    .exp_sum = exp_sum,
    .kda_step = kda_step,
    .axpy = axpy,
    .add = add,
    .scale = scale_n,
    .mul = mul,
};
