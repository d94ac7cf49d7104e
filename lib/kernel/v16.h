/* SPDX-License-Identifier: Apache-2.0 */
/* v16.h - what the three vector headers share.
 *
 * Each defines v16 (16 floats) and these operations, all lane by lane:
 *   v_zero v_set1 v_load v_store            unaligned
 *   v_load_n(p, n) v_store_n(p, v, n)       the first n < 16 lanes; absent ones load as +0
 *   v_load_bf16 v_load_bf16_n               widened; v_load_bf16_pair: 32 of them
 *   v_add v_sub v_mul v_div v_fma           IEEE; v_fma(a, b, c) = a*b + c rounded once
 *   v_max(a, b) = a > b ? a : b,  v_min(a, b) = a < b ? a : b    (b if either is NaN)
 *   v_abs, v_copysign(magnitude, sign), v_select_lt(a, b, x, y) = a < b ? x : y
 *   v_ldexp(p, t)                           p * 2^e rounded once, e = t - ROUNDER, for 0.5 < p < 2, -200 < e < 200
 *   v_sum(a)                                lanes folded by halves; v_sums(v, n, out): of n vectors
 *   v_mxfp4_table(scale, t)                 t [16]: what v_mxfp4 needs to know of a scale byte
 *   v_mxfp4(bytes16, t, &even, &odd)        the two weights of each byte, widened
 *   with V_PAIRS, the same for two rows     v_pair_load, v_pair_look_up, mxfp4_widen; v_load_twice for what they
 *   in one vector                           multiply, v_unpair at the end
 *   v_compact(out, block, exponents)        64 weights of a block of k3_compact.h as bf16, 0 for the exponent of an
 *                                           escape; returns the mask of escapes. With V_EXPAND it is given the
 *                                           escapes, of which 64 may be read, and puts them in
 * and the sizes that suit its registers:
 *   TILE_R x TILE_T   rows x tokens of a tile for many tokens
 *   FEW_T, few_rows   up to FEW_T tokens a tile has them all and few_rows() rows; TILE_MAX bounds both
 *   STREAMS_MAX       rows of a tile of one token, at most
 *   CHAIN_H, CHAIN_V  vectors x columns / 16 of a tile of chains; CHAIN_N rows at once for one vector
 */
#ifndef K3_V16_H
#define K3_V16_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Instrumented, one function with everything inlined would take minutes to compile. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define K3_INSTRUMENTED
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define K3_INSTRUMENTED
#endif
#ifdef K3_INSTRUMENTED
#define INLINE static inline
#define UNROLL
#else
#define INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 64")
#endif
#endif

enum { AHEAD = 8192 }; /* the usual distance of k3_reading */

/* Adding it rounds a small float to the nearest integer, which then stands in the low bits. */
#define ROUNDER 12582912.0f

/* 2^(byte-127) as float bits; byte 0 is the denormal 2^-127, byte 255 gives zeros. */
#define E1(b) ((b) == 0 ? 0x00400000u : (b) == 255 ? 0u : (uint32_t)(b) << 23)
#define E4(b) E1(b), E1(b + 1), E1(b + 2), E1(b + 3)
#define E16(b) E4(b), E4(b + 4), E4(b + 8), E4(b + 12)
#define E64(b) E16(b), E16(b + 16), E16(b + 32), E16(b + 48)
static const uint32_t mxfp4_scale_bits[256] = {E64(0), E64(64), E64(128), E64(192)};

INLINE float mxfp4_scale(uint8_t byte)
{
    float f;
    memcpy(&f, &mxfp4_scale_bits[byte], sizeof f);
    return f;
}

static const float mxfp4_values[16] = {0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6};

#endif
