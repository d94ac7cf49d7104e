/* SPDX-License-Identifier: Apache-2.0 */
/* contract.h - the arithmetic contract, written as plainly as it reads, and
 * shared with no kernel: fmaf of the C library is exact on every machine.
 * exp, tanh and sigmoid are the plain C kernels one element at a time (their
 * accuracy has a test of its own).
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "k3_kernel.h"

static inline float bits_to_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline uint32_t float_to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static inline float bf16_to_float(uint16_t u)
{
    return bits_to_float((uint32_t)u << 16);
}

/* Element i of one row. */
static inline float mxfp4_to_float(const uint8_t *packed, const uint8_t *scale, size_t i)
{
    static const double magnitude[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    int code = i % 2 ? packed[i / 2] >> 4 : packed[i / 2] & 15;
    double v = code & 8 ? -magnitude[code & 7] : magnitude[code & 7];
    return scale[i / 32] == 255 ? (float)(v * 0) : (float)ldexp(v, scale[i / 32] - 127);
}

static inline float fold(float lane[16])
{
    for (int half = 8; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] = lane[l] + lane[l + half];
    return lane[0];
}

static inline float ref_dot(const float *w, const float *x, size_t n)
{
    float lane[16] = {0};
    for (size_t i = 0; i < (n + 15) / 16 * 16; i++)
        lane[i % 16] = i < n ? fmaf(w[i], x[i], lane[i % 16]) : fmaf(0.0f, 0.0f, lane[i % 16]);
    return fold(lane);
}

/* w and x in natural order: lane l takes the two weights of byte l of each group. */
static inline float ref_dot_mxfp4(const float *w, const float *x, size_t n)
{
    float lane[16] = {0};
    for (size_t i = 0; i < n; i++)
        lane[i / 2 % 16] = fmaf(w[i], x[i], lane[i / 2 % 16]);
    return fold(lane);
}

/* The chain down column c, from `sum`. */
static inline float ref_chain(float sum, const float *a, const float *m, size_t rows, size_t ldm, size_t c)
{
    for (size_t i = 0; i < rows; i++)
        sum = fmaf(a[i], m[i * ldm + c], sum);
    return sum;
}

static inline float ref_exp(float x)
{
    float y;
    k3_kernels_available(0)->exp(&y, &x, 1);
    return y;
}

static inline float ref_tanh(float x)
{
    float y;
    k3_kernels_available(0)->tanh(&y, &x, 1);
    return y;
}

static inline float ref_sigmoid(float x)
{
    float y;
    k3_kernels_available(0)->sigmoid(&y, &x, 1);
    return y;
}

static inline float ref_situ(float g, float u, float b1, float b2)
{
    float gate = b1 * ref_tanh(g / b1), up = b2 * ref_tanh(u / b2);
    gate = gate * ref_sigmoid(g);
    return gate * up;
}

static inline float ref_decay(float z, float dt_bias, float a, float lower)
{
    float sum = z + dt_bias;
    float rate = a * sum;
    return ref_exp(lower * ref_sigmoid(rate));
}

/* One token of one head, S in place. */
static inline void ref_kda(float *S, float *o, const k3_kda *token, size_t D)
{
    const float *q = token->q, *k = token->k;
    for (size_t i = 0; i < D; i++)
        for (size_t c = 0; c < D; c++)
            S[i * D + c] = token->alpha[i] * S[i * D + c];
    for (size_t c = 0; c < D; c++) {
        float u = ref_chain(0, k, S, D, D, c);
        float d = token->v[c] - u;
        d = token->beta * d;
        for (size_t i = 0; i < D; i++)
            S[i * D + c] = fmaf(k[i], d, S[i * D + c]);
        o[c] = ref_chain(0, q, S, D, D, c);
    }
}

/* Same bits, or both NaN. */
static inline bool same(float a, float b)
{
    return float_to_bits(a) == float_to_bits(b) || (a != a && b != b);
}

#endif
