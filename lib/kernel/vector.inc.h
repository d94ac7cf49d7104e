/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions, norms and reductions. */

/* Runs `expr`, which may use a = p[i..], b = q[i..] and yields the 16 results for out[i..]. */
#define EACH2(out, p, q, n, expr)                                                                                    \
    do {                                                                                                             \
        size_t i_ = 0;                                                                                               \
        for (; i_ + 16 <= (n); i_ += 16) {                                                                           \
            v16 a = v_load((p) + i_), b = v_load((q) + i_);                                                          \
            (void)b;                                                                                                 \
            v_store((out) + i_, expr);                                                                               \
        }                                                                                                            \
        if (i_ < (n)) {                                                                                              \
            v16 a = v_load_n((p) + i_, (n)-i_), b = v_load_n((q) + i_, (n)-i_);                                      \
            (void)b;                                                                                                 \
            v_store_n((out) + i_, expr, (n)-i_);                                                                     \
        }                                                                                                            \
    } while (0)
#define EACH(out, p, n, expr) EACH2(out, p, p, n, expr)

static void widen_bf16(float *out, const uint16_t *in, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        v_store(out + i, v_load_bf16(in + i));
    if (i < n)
        v_store_n(out + i, v_load_bf16_n(in + i, n - i), n - i);
}

static void rmsnorm(float *out, const float *x, const float *w, size_t n, float eps)
{
    v16 r = v_set1(1.0f / sqrtf(dot(x, x, n) / (float)n + eps));
    EACH2(out, x, w, n, v_mul(v_mul(a, r), b));
}

static void l2norm(float *out, const float *x, size_t n, float eps, float scale)
{
    v16 d = v_set1(sqrtf(dot(x, x, n) + eps)), s = v_set1(scale);
    EACH(out, x, n, v_mul(v_div(a, d), s));
}

INLINE v16 cap(v16 x, float bound)
{
    v16 b = v_set1(bound);
    return v_mul(b, v_tanh(v_div(x, b)));
}

static void situ(float *out, const float *g, const float *u, size_t n, float b1, float b2)
{
    EACH2(out, g, u, n, v_mul(v_mul(cap(a, b1), v_sigmoid(a)), cap(b, b2)));
}

static void silu(float *x, size_t n)
{
    EACH(x, x, n, v_mul(a, v_sigmoid(a)));
}

static void exp_n(float *out, const float *x, size_t n)
{
    EACH(out, x, n, v_exp(a));
}

static void tanh_n(float *out, const float *x, size_t n)
{
    EACH(out, x, n, v_tanh(a));
}

static void sigmoid_n(float *out, const float *x, size_t n)
{
    EACH(out, x, n, v_sigmoid(a));
}

static void mul_sigmoid(float *x, const float *g, size_t n)
{
    EACH2(x, x, g, n, v_mul(a, v_sigmoid(b)));
}

static void decay(float *alpha, const float *z, const float *dt_bias, size_t n, float a_head, float lower)
{
    v16 rate = v_set1(a_head), low = v_set1(lower);
    EACH2(alpha, z, dt_bias, n, v_exp(v_mul(low, v_sigmoid(v_mul(rate, v_add(a, b))))));
}

enum { TAPS = 8 }; /* at once; the sums of longer kernels wait in out */

/* Taps k..k+n of m <= 16 channels, of which w is the first, one vector a tap. */
INLINE void load_taps(v16 *tap, const float *w, size_t K, size_t k, size_t n, size_t m)
{
    float t[TAPS][16] = {{0}};
    for (size_t l = 0; l < m; l++)
        for (size_t i = 0; i < n; i++)
            t[i][l] = w[l * K + k + i];
    for (size_t i = 0; i < n; i++)
        tap[i] = v_load(t[i]);
}

static void conv_silu(float *out, const float *in, const float *w, size_t C, size_t K, size_t T)
{
    for (size_t c = 0; c < C; c += 16) {
        const size_t m = C - c < 16 ? C - c : 16;
        for (size_t k = 0; k < K; k += TAPS) {
            const size_t n = K - k < TAPS ? K - k : TAPS;
            v16 tap[TAPS];
            load_taps(tap, w + c * K, K, k, n, m);
            for (size_t t = 0; t < T; t++) {
                v16 sum = k ? load_part(out + t * C + c, m) : v_zero();
                for (size_t i = 0; i < n; i++)
                    sum = v_fma(tap[i], load_part(in + (t + k + i) * C + c, m), sum);
                store_part(out + t * C + c, k + n < K ? sum : v_mul(sum, v_sigmoid(sum)), m);
            }
        }
    }
}

static float max_n(const float *x, size_t n)
{
    float best = -INFINITY, lane[16];
    v16 m = v_set1(best);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        m = v_max(m, v_load(x + i));
    v_store(lane, m);
    for (size_t l = 0; l < 16; l++)
        best = lane[l] > best ? lane[l] : best;
    for (; i < n; i++)
        best = x[i] > best ? x[i] : best;
    return best;
}

static float exp_sum(float *x, size_t n, float max)
{
    v16 m = v_set1(max), sum = v_zero();
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 e = v_exp(v_sub(v_load(x + i), m));
        v_store(x + i, e);
        sum = v_add(sum, e);
    }
    if (i < n) {
        v_store_n(x + i, v_exp(v_sub(v_load_n(x + i, n - i), m)), n - i);
        sum = v_add(sum, v_load_n(x + i, n - i));
    }
    return v_sum(sum);
}

static void axpy(float *y, float a_scalar, const float *x, size_t n)
{
    v16 s = v_set1(a_scalar);
    EACH2(y, y, x, n, v_fma(s, b, a));
}

static void add(float *y, const float *x, size_t n)
{
    EACH2(y, y, x, n, v_add(a, b));
}

static void scale_n(float *y, float factor, size_t n)
{
    v16 s = v_set1(factor);
    EACH(y, y, n, v_mul(a, s));
}

static void mul(float *out, const float *x, const float *y, size_t n)
{
    EACH2(out, x, y, n, v_mul(a, b));
}
