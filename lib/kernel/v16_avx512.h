/* SPDX-License-Identifier: Apache-2.0 */
/* v16 as one AVX-512 register. */
#ifndef K3_V16_AVX512_H
#define K3_V16_AVX512_H

#include <immintrin.h>

#include "v16.h"

typedef __m512 v16;

enum { TILE_R = 6, TILE_T = 4, TILE_MAX = 8, FEW_T = 6, STREAMS_MAX = 8, CHAIN_H = 6, CHAIN_V = 4, CHAIN_N = 8 };

INLINE int few_rows(int mxfp4, int T)
{
    return T == 1 ? (mxfp4 ? 4 : 2) : mxfp4 || T > 4 ? 4 : 6;
}

INLINE __mmask16 lane_mask(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

INLINE v16 v_zero(void)
{
    return _mm512_setzero_ps();
}

INLINE v16 v_set1(float x)
{
    return _mm512_set1_ps(x);
}

INLINE v16 v_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

INLINE void v_store(float *p, v16 v)
{
    _mm512_storeu_ps(p, v);
}

INLINE v16 v_load_n(const float *p, size_t n)
{
    return _mm512_maskz_loadu_ps(lane_mask(n), p);
}

INLINE void v_store_n(float *p, v16 v, size_t n)
{
    _mm512_mask_storeu_ps(p, lane_mask(n), v);
}

INLINE v16 widen16(__m256i u)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(u), 16));
}

INLINE v16 v_load_bf16(const uint16_t *p)
{
    return widen16(_mm256_loadu_si256((const __m256i *)p));
}

/* One load of the whole line, then each half spread over the upper halves of the lanes. */
INLINE void v_load_bf16_pair(const uint16_t *p, v16 *a, v16 *b)
{
    const __m512i low = _mm512_set_epi16(15, 15, 14, 14, 13, 13, 12, 12, 11, 11, 10, 10, 9, 9, 8, 8, 7, 7, 6, 6, 5, 5,
                                         4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    const __m512i high = _mm512_or_si512(low, _mm512_set1_epi16(16));
    __m512i u = _mm512_loadu_si512(p);
    *a = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xAAAAAAAAu, low, u));
    *b = _mm512_castsi512_ps(_mm512_maskz_permutexvar_epi16(0xAAAAAAAAu, high, u));
}

INLINE v16 v_load_bf16_n(const uint16_t *p, size_t n)
{
    return widen16(_mm256_maskz_loadu_epi16(lane_mask(n), p));
}

INLINE v16 v_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}

INLINE v16 v_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}

INLINE v16 v_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}

INLINE v16 v_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}

INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE v16 v_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}

INLINE v16 v_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}

INLINE v16 v_abs(v16 a)
{
    return _mm512_abs_ps(a);
}

/* m is not negative. */
INLINE v16 v_copysign(v16 m, v16 s)
{
    return _mm512_or_ps(m, _mm512_and_ps(_mm512_set1_ps(-0.0f), s));
}

INLINE v16 v_select_lt(v16 a, v16 b, v16 x, v16 y)
{
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}

INLINE v16 v_ldexp(v16 p, v16 t)
{
    return _mm512_scalef_ps(p, _mm512_sub_ps(t, _mm512_set1_ps(ROUNDER)));
}

INLINE float v_sum(v16 a)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

/* Each step folds two vectors into one: halves, quarters, pairs; the last one a vector by itself. */
#define FOLD(n, in, out, shuffle, a, b)                                                                              \
    UNROLL                                                                                                           \
    for (int i = 0; i < n; i++)                                                                                      \
    out[i] = _mm512_add_ps(shuffle(in[2 * i], in[2 * i + 1], a), shuffle(in[2 * i], in[2 * i + 1], b))

INLINE void v_sum8(const v16 *v, float *out)
{
    v16 h[4], q[2], d[1];
    FOLD(4, v, h, _mm512_shuffle_f32x4, 0x44, 0xEE);
    FOLD(2, h, q, _mm512_shuffle_f32x4, 0x88, 0xDD);
    FOLD(1, q, d, _mm512_shuffle_ps, 0x44, 0xEE);
    v16 s = _mm512_add_ps(d[0], _mm512_permute_ps(d[0], 0xB1)); /* 128-bit part l: v[l] twice, v[l + 4] twice */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    _mm256_storeu_ps(out, _mm512_castps512_ps256(_mm512_permutexvar_ps(order, s)));
}
#undef FOLD

INLINE void v_sums(const v16 *v, int n, float *out)
{
    int i = 0;
    UNROLL
    for (; i + 8 <= n; i += 8)
        v_sum8(v + i, out + i);
    UNROLL
    for (; i < n; i++)
        out[i] = v_sum(v[i]);
}

INLINE void v_mxfp4_table(uint8_t scale, float *t)
{
    _mm512_storeu_ps(t, _mm512_mul_ps(_mm512_loadu_ps(mxfp4_values), _mm512_set1_ps(mxfp4_scale(scale))));
}

/* vpermps looks at the low four bits of each code. */
INLINE void v_mxfp4(const uint8_t *bytes, const float *t, v16 *even, v16 *odd)
{
    __m512 table = _mm512_loadu_ps(t);
    __m512i b = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    *even = _mm512_permutexvar_ps(b, table);
    *odd = _mm512_permutexvar_ps(_mm512_srli_epi32(b, 4), table);
}

/* ---- compact bf16; with VBMI2 escapes are put in on the way ---- */

typedef __m512i v_exponents;

INLINE v_exponents v_exponents_load(const uint8_t e[16])
{
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)e));
}

INLINE __m512i rotate16_right1(__m512i w)
{
#ifdef __AVX512VBMI2__
    return _mm512_shrdi_epi16(w, w, 1);
#else
    return _mm512_or_si512(_mm512_srli_epi16(w, 1), _mm512_slli_epi16(w, 15));
#endif
}

#ifdef __AVX512VBMI2__
#define V_EXPAND
INLINE uint64_t v_compact(uint16_t *out, const uint8_t *block, v_exponents t, const uint8_t *escape)
#else
INLINE uint64_t v_compact(uint16_t *out, const uint8_t *block, v_exponents t)
#endif
{
    long long thirds;
    memcpy(&thirds, block + 80, 8);
    const __m512i two = _mm512_srlv_epi32(_mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(block + 64))),
                                          _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6));
    /* Group g of eight to bit 2 of its bytes. */
    const __m512i third = _mm512_rorv_epi64(_mm512_set1_epi64(thirds), _mm512_setr_epi64(62, 63, 0, 1, 2, 3, 4, 5));
    /* The lower two bits of `two`, the others of `third`; then of those one. */
    const __m512i code = _mm512_and_si512(_mm512_ternarylogic_epi64(_mm512_set1_epi8(3), two, third, 0xCA), _mm512_set1_epi8(7));
    const __mmask64 escapes = _mm512_cmpeq_epi8_mask(code, _mm512_set1_epi8(7));
    __m512i e = _mm512_shuffle_epi8(t, code);
#ifdef V_EXPAND
    e = _mm512_mask_expand_epi8(e, escapes, _mm512_loadu_si512(escape));
#endif
    const __m512i b = _mm512_loadu_si512(block);
    const __m512i lo = rotate16_right1(_mm512_unpacklo_epi8(b, e)), hi = rotate16_right1(_mm512_unpackhi_epi8(b, e));
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    _mm512_storeu_si512(out, _mm512_permutex2var_epi64(lo, first, hi));
    _mm512_storeu_si512(out + 32, _mm512_permutex2var_epi64(lo, second, hi));
    return escapes;
}

#endif
