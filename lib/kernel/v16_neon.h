/* SPDX-License-Identifier: Apache-2.0 */
/* v16 as four NEON registers. */
#ifndef K3_V16_NEON_H
#define K3_V16_NEON_H

#include <arm_neon.h>

#include "v16.h"

typedef struct {
    float32x4_t q[4];
} v16;

enum { TILE_R = 2, TILE_T = 2, TILE_MAX = 4, FEW_T = 3, STREAMS_MAX = 4, CHAIN_H = 3, CHAIN_V = 1, CHAIN_N = 4 };

INLINE int few_rows(int mxfp4, int T)
{
    return T == 1 && !mxfp4 ? 4 : 2;
}

/* Quarter k of the result. */
#define QUARTERS(expr)                                                                                               \
    v16 r_;                                                                                                          \
    UNROLL                                                                                                           \
    for (int k = 0; k < 4; k++)                                                                                      \
        r_.q[k] = (expr);                                                                                            \
    return r_

INLINE v16 v_zero(void)
{
    QUARTERS(vdupq_n_f32(0));
}
INLINE v16 v_set1(float x)
{
    QUARTERS(vdupq_n_f32(x));
}
/* By bytes, because a tensor may begin at an odd address. */
INLINE v16 v_load(const float *p)
{
    QUARTERS(vreinterpretq_f32_u8(vld1q_u8((const uint8_t *)p + 16 * k)));
}
INLINE v16 v_load_n(const float *p, size_t n)
{
    float full[16] = {0};
    memcpy(full, p, n * sizeof *p);
    return v_load(full);
}
INLINE void v_store(float *p, v16 v)
{
    UNROLL
    for (int k = 0; k < 4; k++)
        vst1q_u8((uint8_t *)p + 16 * k, vreinterpretq_u8_f32(v.q[k]));
}
INLINE void v_store_n(float *p, v16 v, size_t n)
{
    float full[16];
    v_store(full, v);
    memcpy(p, full, n * sizeof *p);
}

/* Eight bf16 as floats, in two quarters. */
INLINE void widen8(uint16x8_t u, float32x4_t *low, float32x4_t *high)
{
    *low = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(u), 16));
    *high = vreinterpretq_f32_u32(vshll_high_n_u16(u, 16));
}
INLINE v16 v_load_bf16(const uint16_t *p)
{
    v16 r;
    widen8(vreinterpretq_u16_u8(vld1q_u8((const uint8_t *)p)), &r.q[0], &r.q[1]);
    widen8(vreinterpretq_u16_u8(vld1q_u8((const uint8_t *)p + 16)), &r.q[2], &r.q[3]);
    return r;
}
INLINE void v_load_bf16_pair(const uint16_t *p, v16 *a, v16 *b)
{
    *a = v_load_bf16(p);
    *b = v_load_bf16((const uint16_t *)((const uint8_t *)p + 32));
}
INLINE v16 v_load_bf16_n(const uint16_t *p, size_t n)
{
    uint16_t full[16] = {0};
    memcpy(full, p, n * sizeof *p);
    return v_load_bf16(full);
}

INLINE v16 v_add(v16 a, v16 b)
{
    QUARTERS(vaddq_f32(a.q[k], b.q[k]));
}
INLINE v16 v_sub(v16 a, v16 b)
{
    QUARTERS(vsubq_f32(a.q[k], b.q[k]));
}
INLINE v16 v_mul(v16 a, v16 b)
{
    QUARTERS(vmulq_f32(a.q[k], b.q[k]));
}
INLINE v16 v_div(v16 a, v16 b)
{
    QUARTERS(vdivq_f32(a.q[k], b.q[k]));
}
INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
    QUARTERS(vfmaq_f32(c.q[k], a.q[k], b.q[k]));
}
/* By comparison, as NEON's own maximum of a number and NaN is NaN, and of two zeros +0. */
INLINE v16 v_max(v16 a, v16 b)
{
    QUARTERS(vbslq_f32(vcgtq_f32(a.q[k], b.q[k]), a.q[k], b.q[k]));
}
INLINE v16 v_min(v16 a, v16 b)
{
    QUARTERS(vbslq_f32(vcltq_f32(a.q[k], b.q[k]), a.q[k], b.q[k]));
}
INLINE v16 v_abs(v16 a)
{
    QUARTERS(vabsq_f32(a.q[k]));
}
/* m is not negative. */
INLINE v16 v_copysign(v16 m, v16 s)
{
    QUARTERS(vbslq_f32(vdupq_n_u32(0x80000000u), s.q[k], m.q[k]));
}
INLINE v16 v_select_lt(v16 a, v16 b, v16 x, v16 y)
{
    QUARTERS(vbslq_f32(vcltq_f32(a.q[k], b.q[k]), x.q[k], y.q[k]));
}

/* Two powers of two, each normal: the first product is exact. */
INLINE float32x4_t ldexp4(float32x4_t p, float32x4_t t)
{
    const int32x4_t bias = vdupq_n_s32(127);
    const int32x4_t n = vsubq_s32(vreinterpretq_s32_f32(t), vreinterpretq_s32_f32(vdupq_n_f32(ROUNDER)));
    const int32x4_t half = vshrq_n_s32(n, 1);
    const int32x4_t a = vshlq_n_s32(vaddq_s32(half, bias), 23), b = vshlq_n_s32(vaddq_s32(vsubq_s32(n, half), bias), 23);
    return vmulq_f32(vmulq_f32(p, vreinterpretq_f32_s32(a)), vreinterpretq_f32_s32(b));
}
INLINE v16 v_ldexp(v16 p, v16 t)
{
    QUARTERS(ldexp4(p.q[k], t.q[k]));
}

INLINE float v_sum(v16 a)
{
    const float32x4_t q = vaddq_f32(vaddq_f32(a.q[0], a.q[2]), vaddq_f32(a.q[1], a.q[3]));
    const float32x2_t d = vadd_f32(vget_low_f32(q), vget_high_f32(q));
    return vget_lane_f32(d, 0) + vget_lane_f32(d, 1);
}
INLINE void v_sums(const v16 *v, int n, float *out)
{
    UNROLL
    for (int i = 0; i < n; i++)
        out[i] = v_sum(v[i]);
}

/* MXFP4 by bytes: a scaled weight has no bits but the upper 16. A table holds the upper bytes of the sixteen weights,
 * then the bytes below them. */
INLINE void v_mxfp4_table(uint8_t scale, float *t)
{
    uint8_t *bytes = (uint8_t *)t;
    for (int i = 0; i < 16; i++) {
        const float f = mxfp4_values[i] * mxfp4_scale(scale);
        uint32_t u;
        memcpy(&u, &f, sizeof u);
        bytes[i] = (uint8_t)(u >> 24);
        bytes[16 + i] = (uint8_t)(u >> 16);
    }
}

INLINE v16 mxfp4_widen(uint8x16_t upper, uint8x16_t lower)
{
    v16 r;
    widen8(vreinterpretq_u16_u8(vzip1q_u8(lower, upper)), &r.q[0], &r.q[1]);
    widen8(vreinterpretq_u16_u8(vzip2q_u8(lower, upper)), &r.q[2], &r.q[3]);
    return r;
}

INLINE void v_mxfp4(const uint8_t *bytes, const float *t, v16 *even, v16 *odd)
{
    const uint8x16_t b = vld1q_u8(bytes), e = vandq_u8(b, vdupq_n_u8(15)), o = vshrq_n_u8(b, 4);
    const uint8x16_t upper = vld1q_u8((const uint8_t *)t), lower = vld1q_u8((const uint8_t *)t + 16);
    *even = mxfp4_widen(vqtbl1q_u8(upper, e), vqtbl1q_u8(lower, e));
    *odd = mxfp4_widen(vqtbl1q_u8(upper, o), vqtbl1q_u8(lower, o));
}

/* ---- compact bf16 ---- */

typedef uint8x16_t v_exponents;

INLINE v_exponents v_exponents_load(const uint8_t e[16])
{
    return vld1q_u8(e);
}

/* 16 weights of which `two` has the lower two bits of the codes in its lowest, `third` the third; bytes of ones where
 * there is an escape. */
INLINE uint8x16_t compact16(uint16_t *out, const uint8_t *bytes, uint8x16_t two, uint8x16_t third, v_exponents t)
{
    const uint8x16_t code = vandq_u8(vsliq_n_u8(two, third, 2), vdupq_n_u8(7));
    const uint8x16_t e = vqtbl1q_u8(t, code), b = vld1q_u8(bytes);
    const uint16x8_t low = vreinterpretq_u16_u8(vzip1q_u8(b, e)), high = vreinterpretq_u16_u8(vzip2q_u8(b, e));
    vst1q_u16(out, vsliq_n_u16(vshrq_n_u16(low, 1), low, 15));
    vst1q_u16(out + 8, vsliq_n_u16(vshrq_n_u16(high, 1), high, 15));
    return vceqq_u8(code, vdupq_n_u8(7));
}

INLINE uint64_t v_compact(uint16_t *out, const uint8_t *block, v_exponents t)
{
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t two = vld1q_u8(block + 64), bit = vld1q_u8(bits);
    const uint8x8_t group = vld1_u8(block + 80);
    const uint8x16_t third = vcombine_u8(group, vshr_n_u8(group, 1)); /* of groups 0 and 1 */
    uint8x16_t escape[4];
    escape[0] = compact16(out, block, two, third, t);
    escape[1] = compact16(out + 16, block + 16, vshrq_n_u8(two, 2), vshrq_n_u8(third, 2), t);
    escape[2] = compact16(out + 32, block + 32, vshrq_n_u8(two, 4), vshrq_n_u8(third, 4), t);
    escape[3] = compact16(out + 48, block + 48, vshrq_n_u8(two, 6), vshrq_n_u8(third, 6), t);
    UNROLL
    for (int k = 0; k < 4; k++)
        escape[k] = vandq_u8(escape[k], bit);
    uint8x16_t m = vpaddq_u8(vpaddq_u8(escape[0], escape[1]), vpaddq_u8(escape[2], escape[3]));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(m, m)), 0);
}

#endif
