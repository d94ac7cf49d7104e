/* SPDX-License-Identifier: Apache-2.0 */
/* v16 in plain C, for any machine: an exact FMA without FMA hardware. */
#ifndef K3_V16_SCALAR_H
#define K3_V16_SCALAR_H

#include "v16.h"

typedef struct {
    float f[16];
} v16;

enum { TILE_R = 2, TILE_T = 2, TILE_MAX = 2, FEW_T = 2, STREAMS_MAX = 2, CHAIN_H = 2, CHAIN_V = 2, CHAIN_N = 4 };

INLINE int few_rows(int mxfp4, int T)
{
    (void)mxfp4;
    return T == 1 ? 2 : 1;
}

#define LANES(expr)                                                                                                  \
    v16 r_;                                                                                                          \
    for (int l = 0; l < 16; l++)                                                                                     \
        r_.f[l] = (expr);                                                                                            \
    return r_

INLINE uint32_t float_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

INLINE float bits_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* a*b is exact in double; the sum is rounded to odd in double (TwoSum gives the
 * rest), which keeps the second rounding, to float, exact. */
INLINE float soft_fma(float a, float b, float c)
{
#ifdef FP_FAST_FMAF
    return __builtin_fmaf(a, b, c);
#else
    double p = (double)a * b, q = c, s = p + q;
    double v = s - p, rest = (p - (s - v)) + (q - v);
    uint64_t sb, rb;
    memcpy(&sb, &s, 8);
    memcpy(&rb, &rest, 8);
    uint64_t inexact = (rest < 0) | (rest > 0); /* not for NaN: s is then final */
    sb -= inexact & ((sb ^ rb) >> 63);          /* truncate toward zero */
    sb |= inexact;
    memcpy(&s, &sb, 8);
    return (float)s;
#endif
}

INLINE v16 v_zero(void)
{
    LANES(0.0f);
}
INLINE v16 v_set1(float x)
{
    LANES(x);
}
/* Copied, because a tensor may begin at an odd address. */
INLINE v16 v_load_n(const float *p, size_t n)
{
    v16 v = {{0}};
    memcpy(v.f, p, n * sizeof *p);
    return v;
}
INLINE v16 v_load(const float *p)
{
    return v_load_n(p, 16);
}
INLINE v16 v_load_bf16_n(const uint16_t *p, size_t n)
{
    uint16_t u[16] = {0};
    memcpy(u, p, n * sizeof *p);
    LANES(bits_float((uint32_t)u[l] << 16));
}
INLINE v16 v_load_bf16(const uint16_t *p)
{
    return v_load_bf16_n(p, 16);
}
INLINE void v_load_bf16_pair(const uint16_t *p, v16 *a, v16 *b)
{
    *a = v_load_bf16(p);
    *b = v_load_bf16(p + 16);
}

INLINE v16 v_add(v16 a, v16 b)
{
    LANES(a.f[l] + b.f[l]);
}
INLINE v16 v_sub(v16 a, v16 b)
{
    LANES(a.f[l] - b.f[l]);
}
INLINE v16 v_mul(v16 a, v16 b)
{
    LANES(a.f[l] * b.f[l]);
}
INLINE v16 v_div(v16 a, v16 b)
{
    LANES(a.f[l] / b.f[l]);
}
INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
    LANES(soft_fma(a.f[l], b.f[l], c.f[l]));
}
INLINE v16 v_max(v16 a, v16 b)
{
    LANES(a.f[l] > b.f[l] ? a.f[l] : b.f[l]);
}
INLINE v16 v_min(v16 a, v16 b)
{
    LANES(a.f[l] < b.f[l] ? a.f[l] : b.f[l]);
}
INLINE v16 v_abs(v16 a)
{
    LANES(bits_float(float_bits(a.f[l]) & 0x7fffffffu));
}
INLINE v16 v_copysign(v16 m, v16 s)
{
    LANES(bits_float(float_bits(m.f[l]) | (float_bits(s.f[l]) & 0x80000000u)));
}
INLINE v16 v_select_lt(v16 a, v16 b, v16 x, v16 y)
{
    LANES(a.f[l] < b.f[l] ? x.f[l] : y.f[l]);
}

INLINE void v_store(float *p, v16 v)
{
    memcpy(p, &v, sizeof v);
}

INLINE void v_store_n(float *p, v16 v, size_t n)
{
    memcpy(p, &v, n * sizeof *p);
}

/* Two powers of two, each normal: the first product is exact. */
INLINE v16 v_ldexp(v16 p, v16 t)
{
    v16 r;
    for (int l = 0; l < 16; l++) {
        uint32_t n = float_bits(t.f[l]) - float_bits(ROUNDER); /* two's complement */
        uint32_t half = (uint32_t)((int32_t)n >> 1);
        r.f[l] = p.f[l] * bits_float((half + 127) << 23) * bits_float((n - half + 127) << 23);
    }
    return r;
}

INLINE float v_sum(v16 a)
{
    for (int half = 8; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            a.f[l] = a.f[l] + a.f[l + half];
    return a.f[0];
}

INLINE void v_sums(const v16 *v, int n, float *out)
{
    UNROLL
    for (int i = 0; i < n; i++)
        out[i] = v_sum(v[i]);
}

INLINE void v_mxfp4_table(uint8_t scale, float *t)
{
    for (int i = 0; i < 16; i++)
        t[i] = mxfp4_values[i] * mxfp4_scale(scale);
}

INLINE void v_mxfp4(const uint8_t *bytes, const float *t, v16 *even, v16 *odd)
{
    for (int l = 0; l < 16; l++) {
        even->f[l] = t[bytes[l] & 15];
        odd->f[l] = t[bytes[l] >> 4];
    }
}

typedef const uint8_t *v_exponents;

INLINE v_exponents v_exponents_load(const uint8_t e[16])
{
    return e;
}

INLINE uint64_t v_compact(uint16_t *out, const uint8_t *block, v_exponents exponent)
{
    uint64_t escapes = 0;
    for (int i = 0; i < 64; i++) {
        const int code = (block[64 + i % 16] >> (i / 16 * 2) & 3) | (block[80 + i % 8] >> (i / 8) & 1) << 2;
        out[i] = (uint16_t)(exponent[code] << 7 | block[i] >> 1 | (block[i] & 1) << 15);
        escapes |= (uint64_t)(code == 7) << i;
    }
    return escapes;
}

#endif
