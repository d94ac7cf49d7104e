/* SPDX-License-Identifier: Apache-2.0 */
/* checks.h - one function a kernel: inputs, the call, the contract's answer. */
#ifndef CHECKS_H
#define CHECKS_H

#include <float.h>

#include "values.h"

/* Any way to read weights: bits do not depend on it. */
static k3_reading reading(test *t)
{
    if (t->bench)
        return k3_reading_usual();
    return (k3_reading){(k3_hint)(next(t) % 3), next(t) % 4 * 3000, next(t) % 10};
}

/* Row and token strides leave gaps that must be neither read as data nor written. */
typedef struct {
    const float *wide; /* [rows][n], as the kernel should see them */
    const void *w;
    const uint8_t *scale;
    const k3_compact *compact;
    size_t row; /* of it */
} weights;

static void call_mm(test *t, const weights *w, float *out, size_t ldo, const k3_vectors *v)
{
    const shape s = t->s;
    const k3_weights m = {w->w, w->scale, s.rows, s.n};
    const k3_work work = {scratch(), reading(t)};
    if (w->compact)
        CALL(t, t->K->mm_compact(out, ldo, w->compact, w->row, s.rows, v, &work));
    else if (w->scale)
        CALL(t, t->K->mm_mxfp4(out, ldo, &m, v, &work));
    else if (w->w == w->wide)
        CALL(t, t->K->mm_f32(out, ldo, &m, v, &work));
    else
        CALL(t, t->K->mm_bf16(out, ldo, &m, v, &work));
}

static void check_mm(test *t, const weights *w)
{
    const uint8_t *scale = w->scale;
    const float *wide = w->wide;
    const shape s = t->s;
    const size_t ldx = s.n + (t->bench ? 0 : next(t) % 40), ldo = s.rows + (t->bench ? 0 : next(t) % 3);
    float *x = guard_array(&t->arena, ((s.T - 1) * ldx + s.n) * sizeof *x, sizeof *x);
    float *out = guard_array(&t->arena, ((s.T - 1) * ldo + s.rows) * sizeof *out, sizeof *out);
    float *plain = calloc(s.T * s.n, sizeof *plain), *split = scale ? calloc(s.n, sizeof *split) : NULL;
    for (size_t j = 0; j < s.T; j++) {
        for (size_t i = 0; i < s.n; i++)
            plain[j * s.n + i] = value(t);
        memcpy(x + j * ldx, plain + j * s.n, s.n * sizeof *x);
        if (scale)
            t->K->mxfp4_split(x + j * ldx, plain + j * s.n, s.n);
    }
    float gap;
    memset(&gap, GUARD_BYTE, sizeof gap);
    call_mm(t, w, out, ldo, &(k3_vectors){x, s.T, ldx});
    for (size_t j = 0; j < s.T && !t->bench; j++)
        for (size_t r = 0; r < (j + 1 < s.T ? ldo : s.rows); r++)
            compare(t, "out", j * ldo + r, out[j * ldo + r],
                    r >= s.rows ? gap
                    : scale     ? ref_dot_mxfp4(wide + r * s.n, plain + j * s.n, s.n)
                                : ref_dot(wide + r * s.n, plain + j * s.n, s.n));
    free(plain);
    free(split);
}

static void check_mm_f32(test *t)
{
    float *w = floats(t, t->s.rows * t->s.n);
    check_mm(t, &(weights){.wide = w, .w = w});
}

static float *widened(const uint16_t *w, size_t n)
{
    float *wide = malloc(n * sizeof *wide);
    if (!wide)
        guard_fail("malloc");
    for (size_t i = 0; i < n; i++)
        wide[i] = bf16_to_float(w[i]);
    return wide;
}

static void check_mm_bf16(test *t)
{
    uint16_t *w = halves(t, t->s.rows * t->s.n);
    float *wide = widened(w, t->s.rows * t->s.n);
    check_mm(t, &(weights){.wide = wide, .w = w});
    free(wide);
}

static void check_mm_mxfp4(test *t)
{
    t->s.n = (t->s.n + 31) / 32 * 32;
    const size_t n = t->s.n, rows = t->s.rows;
    uint8_t *w = bytes(t, rows * n / 2), *scale = scales(t, rows * n / 32);
    float *wide = malloc(rows * n * sizeof *wide);
    for (size_t i = 0; i < rows * n; i++)
        wide[i] = mxfp4_to_float(w + i / n * (n / 2), scale + i / n * (n / 32), i % n);
    check_mm(t, &(weights){.wide = wide, .w = w, .scale = scale});
    free(wide);
}

static void check_mxfp4_split(test *t)
{
    t->s.n = (t->s.n + 31) / 32 * 32;
    float *x = floats(t, t->s.n), *xs = floats(t, t->s.n);
    CALL(t, t->K->mxfp4_split(xs, x, t->s.n));
    for (size_t i = 0; i < t->s.n; i++)
        compare(t, "xs", i, xs[i / 32 * 32 + i % 2 * 16 + i % 32 / 2], x[i]);
}

static void check_mxfp4_decode(test *t)
{
    t->s.n = (t->s.n + 31) / 32 * 32;
    uint8_t *w = bytes(t, t->s.n / 2), *scale = scales(t, t->s.n / 32);
    float *out = floats(t, t->s.n);
    CALL(t, t->K->mxfp4_decode(out, w, scale, t->s.n));
    for (size_t i = 0; i < t->s.n; i++)
        compare(t, "out", i, out[i], mxfp4_to_float(w, scale, i));
}

static void check_dot(test *t)
{
    float *a = floats(t, t->s.n), *b = floats(t, t->s.n), got = 0;
    CALL(t, got = t->K->dot(a, b, t->s.n));
    compare(t, "dot", 0, got, ref_dot(a, b, t->s.n));
}

static void check_tmm_bf16(test *t)
{
    const shape s = t->s;
    uint16_t *m = halves(t, s.rows * s.n);
    float *a = floats(t, s.rows), *out = floats(t, s.n), *wide = widened(m, s.rows * s.n);
    CALL(t, t->K->tmm_bf16(out, a, m, s.rows, s.n));
    for (size_t c = 0; c < s.n && !t->bench; c++)
        compare(t, "out", c, out[c], ref_chain(0, a, wide, s.rows, s.n, c));
    free(wide);
}

static void check_tmm_f32(test *t)
{
    const shape s = t->s;
    const size_t ldm = s.n + next(t) % 5;
    float *m = floats(t, (s.rows - 1) * ldm + s.n), *a = floats(t, s.rows), *out = floats(t, s.n);
    float *before = copy(out, s.n);
    CALL(t, t->K->tmm_f32(out, a, m, s.rows, s.n, ldm));
    for (size_t c = 0; c < s.n && !t->bench; c++)
        compare(t, "out", c, out[c], ref_chain(before[c], a, m, s.rows, ldm, c));
    free(before);
}

static void check_tmm_f32_multi(test *t)
{
    const shape s = t->s;
    const size_t ldm = s.n + next(t) % 5, lda = s.rows + next(t) % 5, ldo = s.n + next(t) % 5;
    float *m = floats(t, (s.rows - 1) * ldm + s.n), *a = floats(t, (s.T - 1) * lda + s.rows);
    float *out = floats(t, (s.T - 1) * ldo + s.n), *before = copy(out, (s.T - 1) * ldo + s.n);
    CALL(t, t->K->tmm_f32_multi(out, ldo, &(k3_vectors){a, s.T, lda}, &(k3_vectors){m, s.rows, ldm}, s.n));
    for (size_t h = 0; h < s.T && !t->bench; h++)
        for (size_t c = 0; c < (h + 1 < s.T ? ldo : s.n); c++)
            compare(t, "out", h * ldo + c, out[h * ldo + c],
                    c < s.n ? ref_chain(before[h * ldo + c], a + h * lda, m, s.rows, ldm, c) : before[h * ldo + c]);
    free(before);
}

static void check_widen_bf16(test *t)
{
    uint16_t *in = halves(t, t->s.n);
    float *out = floats(t, t->s.n);
    CALL(t, t->K->widen_bf16(out, in, t->s.n));
    for (size_t i = 0; i < t->s.n; i++)
        compare(t, "out", i, out[i], bf16_to_float(in[i]));
}

static void check_rmsnorm(test *t)
{
    const size_t n = t->s.n;
    float *x = floats(t, n), *w = floats(t, n), *out = floats(t, n);
    CALL(t, t->K->rmsnorm(out, x, w, n, 1e-5f));
    float mean = ref_dot(x, x, n) / (float)n;
    float root = sqrtf(mean + 1e-5f), r = 1.0f / root;
    for (size_t i = 0; i < n; i++) {
        float scaled = x[i] * r;
        compare(t, "out", i, out[i], scaled * w[i]);
    }
    t->K->rmsnorm(x, x, w, n, 1e-5f);
    compare_all(t, "in place", x, out, n);
}

static void check_l2norm(test *t)
{
    const size_t n = t->s.n;
    float *x = floats(t, n), *out = floats(t, n);
    CALL(t, t->K->l2norm(out, x, n, 1e-6f, 0.088388348f));
    float root = sqrtf(ref_dot(x, x, n) + 1e-6f);
    for (size_t i = 0; i < n; i++) {
        float quotient = x[i] / root;
        compare(t, "out", i, out[i], quotient * 0.088388348f);
    }
    t->K->l2norm(x, x, n, 1e-6f, 0.088388348f);
    compare_all(t, "in place", x, out, n);
}

static void check_situ(test *t)
{
    float *g = floats(t, t->s.n), *u = floats(t, t->s.n), *out = floats(t, t->s.n);
    CALL(t, t->K->situ(out, g, u, t->s.n, 4.0f, 25.0f));
    for (size_t i = 0; i < t->s.n; i++)
        compare(t, "out", i, out[i], ref_situ(g[i], u[i], 4.0f, 25.0f));
    t->K->situ(g, g, u, t->s.n, 4.0f, 25.0f);
    compare_all(t, "in place", g, out, t->s.n);
}

static void check_silu(test *t)
{
    float *x = floats(t, t->s.n), *before = copy(x, t->s.n);
    CALL(t, t->K->silu(x, t->s.n));
    for (size_t i = 0; i < t->s.n && !t->bench; i++)
        compare(t, "x", i, x[i], before[i] * ref_sigmoid(before[i]));
    free(before);
}

static void check_function(test *t, void (*kernel)(float *, const float *, size_t), float (*ref)(float))
{
    float *x = floats(t, t->s.n), *out = floats(t, t->s.n);
    CALL(t, kernel(out, x, t->s.n));
    for (size_t i = 0; i < t->s.n; i++)
        compare(t, "out", i, out[i], ref(x[i]));
}

static void check_exp(test *t)
{
    check_function(t, t->K->exp, ref_exp);
}

static void check_tanh(test *t)
{
    check_function(t, t->K->tanh, ref_tanh);
}

static void check_sigmoid(test *t)
{
    check_function(t, t->K->sigmoid, ref_sigmoid);
}

static void check_mul_sigmoid(test *t)
{
    float *x = floats(t, t->s.n), *g = floats(t, t->s.n), *before = copy(x, t->s.n);
    CALL(t, t->K->mul_sigmoid(x, g, t->s.n));
    for (size_t i = 0; i < t->s.n && !t->bench; i++)
        compare(t, "x", i, x[i], before[i] * ref_sigmoid(g[i]));
    free(before);
}

static void check_decay(test *t)
{
    float *z = floats(t, t->s.n), *dt = floats(t, t->s.n), *alpha = floats(t, t->s.n);
    CALL(t, t->K->decay(alpha, z, dt, t->s.n, 1.7f, -5.0f));
    for (size_t i = 0; i < t->s.n; i++)
        compare(t, "alpha", i, alpha[i], ref_decay(z[i], dt[i], 1.7f, -5.0f));
    t->K->decay(z, z, dt, t->s.n, 1.7f, -5.0f);
    compare_all(t, "in place", z, alpha, t->s.n);
}

/* rows is the number of taps here. */
static void check_conv_silu(test *t)
{
    const size_t C = t->s.n, K = t->s.rows, T = t->s.T;
    float *in = floats(t, (K - 1 + T) * C), *w = floats(t, C * K), *out = floats(t, T * C);
    CALL(t, t->K->conv_silu(out, in, w, C, K, T));
    for (size_t i = 0; i < T * C && !t->bench; i++) {
        float sum = 0;
        for (size_t k = 0; k < K; k++)
            sum = fmaf(w[i % C * K + k], in[(i / C + k) * C + i % C], sum);
        compare(t, "out", i, out[i], sum * ref_sigmoid(sum));
    }
}

static void check_max(test *t)
{
    float *x = floats(t, t->s.n), want = -INFINITY, got = 0, plain;
    if (next(t) % 4 == 0 && t->values != ANY)
        x[t->s.n - 1] = FLT_MAX; /* else the last one seldom matters */
    for (size_t i = 0; i < t->s.n; i++)
        want = x[i] > want ? x[i] : want;
    CALL(t, got = t->K->max(x, t->s.n));
    plain = k3_kernels_available(0)->max(x, t->s.n);
    compare(t, "max", 0, got, plain); /* the sign of zero */
    if (t->values != ANY)
        compare(t, "max", 0, got == 0 ? 0 : got, want == 0 ? 0 : want);
}

static void check_exp_sum(test *t)
{
    float *x = floats(t, t->s.n), *before = copy(x, t->s.n), lane[16] = {0}, got = 0;
    float max = t->K->max(x, t->s.n);
    CALL(t, got = t->K->exp_sum(x, t->s.n, max));
    for (size_t i = 0; i < t->s.n && !t->bench; i++) {
        float e = ref_exp(before[i] - max);
        compare(t, "x", i, x[i], e);
        lane[i % 16] = lane[i % 16] + e;
    }
    if (!t->bench)
        compare(t, "sum", 0, got, fold(lane));
    free(before);
}

static void check_kda_step(test *t)
{
    const size_t D = t->s.n;
    float *S = floats(t, D * D), *q = floats(t, D), *k = floats(t, D), *v = floats(t, D), *alpha = floats(t, D);
    float *o = floats(t, D), *want_S = copy(S, D * D), *want_o = copy(o, D), beta = unit(t);
    const k3_kda token = {q, k, v, alpha, beta};
    CALL(t, t->K->kda_step(S, o, &token, D));
    if (!t->bench) {
        ref_kda(want_S, want_o, &token, D);
        compare_all(t, "S", S, want_S, D * D);
        compare_all(t, "o", o, want_o, D);
    }
    free(want_S);
    free(want_o);
}

/* axpy, add, scale and mul; also the place where single fused operations meet hard values. */
static void check_arithmetic(test *t)
{
    const size_t n = t->s.n;
    float *y = floats(t, n), *x = floats(t, n), *out = floats(t, n), *before = copy(y, n), a = value(t);
    CALL(t, t->K->axpy(y, a, x, n));
    for (size_t i = 0; i < n && !t->bench; i++)
        compare(t, "axpy", i, y[i], fmaf(a, x[i], before[i]));
    memcpy(y, before, n * sizeof *y);
    t->K->add(y, x, n);
    t->K->mul(out, before, x, n);
    for (size_t i = 0; i < n; i++) {
        compare(t, "add", i, y[i], before[i] + x[i]);
        compare(t, "mul", i, out[i], before[i] * x[i]);
    }
    t->K->scale(out, a, n);
    for (size_t i = 0; i < n; i++)
        compare(t, "scale", i, out[i], before[i] * x[i] * a);
    free(before);
}

#endif
