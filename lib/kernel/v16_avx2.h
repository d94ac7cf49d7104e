/* SPDX-License-Identifier: Apache-2.0 */
/* v16 as two AVX2 registers. */
#ifndef K3_V16_AVX2_H
#define K3_V16_AVX2_H

#include <immintrin.h>

#include "v16.h"

typedef struct {
    __m256 lo, hi;
} v16;

enum { TILE_R = 3, TILE_T = 2, TILE_MAX = 4, FEW_T = 3, STREAMS_MAX = 4, CHAIN_H = 3, CHAIN_V = 2, CHAIN_N = 4 };

INLINE int few_rows(int mxfp4, int T)
{
    (void)mxfp4;
    (void)T;
    return 2;
}

#define BOTH(name, op)                                                                                               \
    INLINE v16 name(v16 a, v16 b)                                                                                    \
    {                                                                                                                \
        return (v16){op(a.lo, b.lo), op(a.hi, b.hi)};                                                                \
    }
BOTH(v_add, _mm256_add_ps)
BOTH(v_sub, _mm256_sub_ps)
BOTH(v_mul, _mm256_mul_ps)
BOTH(v_div, _mm256_div_ps)
BOTH(v_max, _mm256_max_ps)
BOTH(v_min, _mm256_min_ps)
#undef BOTH

INLINE v16 v_zero(void)
{
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

INLINE v16 v_set1(float x)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

INLINE v16 v_load(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

INLINE void v_store(float *p, v16 v)
{
    _mm256_storeu_ps(p, v.lo);
    _mm256_storeu_ps(p + 8, v.hi);
}

/* All ones in the first n of 16 lanes. */
INLINE void lane_mask(size_t n, __m256i *lo, __m256i *hi)
{
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    *lo = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), i);
    *hi = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n - 8), i);
}

INLINE v16 v_load_n(const float *p, size_t n)
{
    __m256i lo, hi;
    lane_mask(n, &lo, &hi);
    return (v16){_mm256_maskload_ps(p, lo), _mm256_maskload_ps(p + 8, hi)};
}

INLINE void v_store_n(float *p, v16 v, size_t n)
{
    __m256i lo, hi;
    lane_mask(n, &lo, &hi);
    _mm256_maskstore_ps(p, lo, v.lo);
    _mm256_maskstore_ps(p + 8, hi, v.hi);
}

INLINE __m256 widen8(__m128i u)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(u), 16));
}

INLINE v16 v_load_bf16(const uint16_t *p)
{
    return (v16){widen8(_mm_loadu_si128((const __m128i *)p)), widen8(_mm_loadu_si128((const __m128i *)(p + 8)))};
}

INLINE void v_load_bf16_pair(const uint16_t *p, v16 *a, v16 *b)
{
    *a = v_load_bf16(p);
    *b = v_load_bf16(p + 16);
}

INLINE v16 v_load_bf16_n(const uint16_t *p, size_t n)
{
    uint16_t full[16] = {0};
    memcpy(full, p, n * sizeof *p); /* which may be an odd address */
    return v_load_bf16(full);
}

INLINE v16 v_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}

INLINE v16 v_abs(v16 a)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}

/* m is not negative. */
INLINE v16 v_copysign(v16 m, v16 s)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_or_ps(m.lo, _mm256_and_ps(sign, s.lo)), _mm256_or_ps(m.hi, _mm256_and_ps(sign, s.hi))};
}

INLINE v16 v_select_lt(v16 a, v16 b, v16 x, v16 y)
{
    return (v16){_mm256_blendv_ps(y.lo, x.lo, _mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ)),
                 _mm256_blendv_ps(y.hi, x.hi, _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ))};
}

/* Two powers of two, each normal: the first product is exact. */
INLINE __m256 ldexp8(__m256 p, __m256 t)
{
    const __m256i bias = _mm256_set1_epi32(127);
    __m256i n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(_mm256_set1_ps(ROUNDER)));
    __m256i half = _mm256_srai_epi32(n, 1);
    __m256i a = _mm256_slli_epi32(_mm256_add_epi32(half, bias), 23);
    __m256i b = _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(n, half), bias), 23);
    return _mm256_mul_ps(_mm256_mul_ps(p, _mm256_castsi256_ps(a)), _mm256_castsi256_ps(b));
}

INLINE v16 v_ldexp(v16 p, v16 t)
{
    return (v16){ldexp8(p.lo, t.lo), ldexp8(p.hi, t.hi)};
}

INLINE float v_sum(v16 a)
{
    __m256 h = _mm256_add_ps(a.lo, a.hi);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
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
    const __m256 s = _mm256_set1_ps(mxfp4_scale(scale));
    __m256i lo = _mm256_castps_si256(_mm256_mul_ps(_mm256_loadu_ps(mxfp4_values), s));
    __m256i hi = _mm256_castps_si256(_mm256_mul_ps(_mm256_loadu_ps(mxfp4_values + 8), s));
    __m256i words = _mm256_packus_epi32(_mm256_srli_epi32(lo, 16), _mm256_srli_epi32(hi, 16));
    words = _mm256_permute4x64_epi64(words, 0xD8);
    words = _mm256_packus_epi16(_mm256_srli_epi16(words, 8), _mm256_and_si256(words, _mm256_set1_epi16(0xFF)));
    _mm256_storeu_si256((__m256i *)t, _mm256_permute4x64_epi64(words, 0xD8));
}

/* Upper and lower bytes of weights, or of tables: one for each half. */
typedef struct {
    __m256i upper, lower;
} mxfp4_bytes;

/* In each half, the weights of 16 codes by the half's table. */
INLINE mxfp4_bytes mxfp4_look_up(__m256i codes, mxfp4_bytes table)
{
    codes = _mm256_and_si256(codes, _mm256_set1_epi8(15));
    return (mxfp4_bytes){_mm256_shuffle_epi8(table.upper, codes), _mm256_shuffle_epi8(table.lower, codes)};
}

/* The first or the second eight weights of each half as floats: four of both halves, then the next four. */
INLINE v16 mxfp4_widen(mxfp4_bytes w, int second)
{
    __m256i u = second ? _mm256_unpackhi_epi8(w.lower, w.upper) : _mm256_unpacklo_epi8(w.lower, w.upper);
    return (v16){_mm256_castsi256_ps(_mm256_slli_epi32(u, 16)),
                 _mm256_castsi256_ps(_mm256_and_si256(u, _mm256_set1_epi32((int)0xFFFF0000u)))};
}

/* So that mxfp4_widen finds weights i and i + 4 in the same 32 bits. */
INLINE __m256i mxfp4_order(__m256i bytes)
{
    const __m128i order = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
    return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
}

INLINE __m256i two_halves(const void *low, const void *high)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)low)),
                                   _mm_loadu_si128((const __m128i *)high), 1);
}

/* Of vectors whose halves belong to two rows, as mxfp4_widen gives them: the first row, and the second. */
INLINE void v_unpair(v16 *a, v16 *b)
{
    v16 p = {_mm256_permute2f128_ps(a->lo, a->hi, 0x20), _mm256_permute2f128_ps(b->lo, b->hi, 0x20)};
    v16 q = {_mm256_permute2f128_ps(a->lo, a->hi, 0x31), _mm256_permute2f128_ps(b->lo, b->hi, 0x31)};
    *a = p;
    *b = q;
}

INLINE void v_mxfp4(const uint8_t *bytes, const float *t, v16 *even, v16 *odd)
{
    __m256i b = mxfp4_order(two_halves(bytes, bytes));
    b = _mm256_blend_epi32(b, _mm256_srli_epi16(b, 4), 0xF0);
    mxfp4_bytes w = mxfp4_look_up(b, (mxfp4_bytes){two_halves(t, t), two_halves(t + 4, t + 4)});
    *even = mxfp4_widen(w, 0);
    *odd = mxfp4_widen(w, 1);
    v_unpair(even, odd);
}

/* ---- two rows of MXFP4 in one vector ---- */
#define V_PAIRS

typedef struct {
    __m256i bytes;
    mxfp4_bytes table;
} v_pair;

INLINE v_pair v_pair_load(const uint8_t *p, const float *tp, const uint8_t *q, const float *tq)
{
    return (v_pair){mxfp4_order(two_halves(p, q)), {two_halves(tp, tq), two_halves(tp + 4, tq + 4)}};
}

INLINE mxfp4_bytes v_pair_look_up(const v_pair *p, int odd)
{
    return mxfp4_look_up(odd ? _mm256_srli_epi16(p->bytes, 4) : p->bytes, p->table);
}

INLINE v16 v_load_twice(const float *p)
{
    return (v16){_mm256_broadcast_ps((const __m128 *)p), _mm256_broadcast_ps((const __m128 *)(p + 4))};
}

/* ---- compact bf16 ---- */

/* Exponents by the lower two bits of a code: of codes below 4, and of the others. */
typedef struct {
    __m256i low, high;
} v_exponents;

INLINE v_exponents v_exponents_load(const uint8_t e[16])
{
    int32_t low, high;
    memcpy(&low, e, 4);
    memcpy(&high, e + 4, 4);
    return (v_exponents){_mm256_set1_epi32(low), _mm256_set1_epi32(high)};
}

INLINE __m256i rotate16_right1(__m256i w)
{
    return _mm256_or_si256(_mm256_srli_epi16(w, 1), _mm256_slli_epi16(w, 15));
}

/* 32 weights: `two` has the lower two bits of their codes in its lowest, `third` the third in its highest. */
INLINE uint32_t compact32(uint16_t *out, const uint8_t *bytes, __m256i two, __m256i third, v_exponents t)
{
    const __m256i code = _mm256_and_si256(two, _mm256_set1_epi8(3));
    const __m256i e = _mm256_blendv_epi8(_mm256_shuffle_epi8(t.low, code), _mm256_shuffle_epi8(t.high, code), third);
    const __m256i b = _mm256_loadu_si256((const __m256i *)bytes);
    const __m256i lo = rotate16_right1(_mm256_unpacklo_epi8(b, e)), hi = rotate16_right1(_mm256_unpackhi_epi8(b, e));
    _mm256_storeu_si256((__m256i *)out, _mm256_permute2x128_si256(lo, hi, 0x20));
    _mm256_storeu_si256((__m256i *)(out + 16), _mm256_permute2x128_si256(lo, hi, 0x31));
    return (uint32_t)_mm256_movemask_epi8(_mm256_and_si256(_mm256_cmpeq_epi8(code, _mm256_set1_epi8(3)), third));
}

INLINE uint64_t v_compact(uint16_t *out, const uint8_t *block, v_exponents t)
{
    long long thirds;
    memcpy(&thirds, block + 80, 8);
    const __m256i two = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(block + 64)));
    const __m256i third = _mm256_set1_epi64x(thirds);
    const uint32_t first = compact32(out, block, _mm256_srlv_epi32(two, _mm256_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2)),
                                     _mm256_sllv_epi64(third, _mm256_setr_epi64x(7, 6, 5, 4)), t);
    const uint32_t second =
        compact32(out + 32, block + 32, _mm256_srlv_epi32(two, _mm256_setr_epi32(4, 4, 4, 4, 6, 6, 6, 6)),
                  _mm256_sllv_epi64(third, _mm256_setr_epi64x(3, 2, 1, 0)), t);
    return first | (uint64_t)second << 32;
}

#endif
