/* k3_kernel.h - the arithmetic of the model on plain arrays.
 *
 * One table of functions per instruction set; every table gives the same bits
 * for every finite or infinite result (any NaN equals any NaN). All functions
 * are single-threaded: callers give each worker its own rows, heads or columns.
 * Matrices need no alignment, other arrays their element's; none may overlap unless
 * a function says "in place". Nothing outside the given shapes is read or
 * written. Every n, rows, cols, T >= 1.
 *
 * The contract. Dot product: 16 lanes; lane l sums the elements i = l (mod 16)
 * in increasing i by a = fma(w, x, a) from +0; the last, partial block runs all
 * lanes, absent elements being fma(+0, +0, a); the lanes fold by halves:
 * l + (l+8), l + (l+4), l + (l+2), l + (l+1). Chain: out = fma(a_i, m_i, out),
 * i ascending. Division and square root are IEEE. Denormals are kept.
 */
#ifndef K3_KERNEL_H
#define K3_KERNEL_H

#include "k3_base.h"

typedef struct k3_kernels {
    const char *name; /* "scalar", "avx2", "avx512" */

    /* ---- products with a row-major matrix w [rows][n]; x [T][ldx], out [T][ldo] ---- */

    /* out[t*ldo + r] = dot(w[r], x[t]). T tokens give the bits of T calls with T = 1. bf16 widens exactly. */
    void (*mm_bf16)(float *out, size_t ldo, const uint16_t *w, size_t rows, size_t n, const float *x, size_t ldx,
                    size_t T);
    void (*mm_f32)(float *out, size_t ldo, const float *w, size_t rows, size_t n, const float *x, size_t ldx,
                   size_t T);

    /* The same with MXFP4 weights: packed [rows][n/2], scale [rows][n/32], n a multiple of 32.
     * xs [T][ldx] is x in the order of mxfp4_split. Per group of 32 lane l takes the weights of byte l:
     * the even element first, then the odd one. */
    void (*mm_mxfp4)(float *out, size_t ldo, const uint8_t *packed, const uint8_t *scale, size_t rows, size_t n,
                     const float *xs, size_t ldx, size_t T);
    /* Per group of 32 elements: the 16 even ones, then the 16 odd ones. n a multiple of 32. */
    void (*mxfp4_split)(float *xs, const float *x, size_t n);
    /* One row of n weights in natural order, widened exactly: packed [n/2], scale [n/32]. */
    void (*mxfp4_decode)(float *out, const uint8_t *packed, const uint8_t *scale, size_t n);

    float (*dot)(const float *a, const float *b, size_t n);

    /* ---- transposed products: chains down the rows of m ---- */

    /* out[c] = chain over i of a[i] * m[i*cols + c] from +0, i < rows, c < cols. */
    void (*tmm_bf16)(float *out, const float *a, const uint16_t *m, size_t rows, size_t cols);
    /* The chain goes on from the values in out, so that blocks of rows can follow each other. m [rows][ldm]. */
    void (*tmm_f32)(float *out, const float *a, const float *m, size_t rows, size_t cols, size_t ldm);
    /* H vectors against one matrix: out[h*ldo + c] goes on with a[h*lda + i] * m[i*ldm + c].
     * The bits of H calls of tmm_f32, with m read once. */
    void (*tmm_f32_multi)(float *out, size_t ldo, const float *a, size_t lda, size_t H, const float *m, size_t rows,
                          size_t cols, size_t ldm);

    /* ---- elementwise and reductions; out may be x (or g) itself ---- */

    void (*widen_bf16)(float *out, const uint16_t *in, size_t n);
    /* ss = dot(x, x); r = 1/sqrt(ss/n + eps); out = (x*r)*w */
    void (*rmsnorm)(float *out, const float *x, const float *w, size_t n, float eps);
    /* ss = dot(x, x); out = x / sqrt(ss + eps) * scale */
    void (*l2norm)(float *out, const float *x, size_t n, float eps, float scale);
    /* out = (b1*tanh(g/b1) * sigmoid(g)) * (b2*tanh(u/b2)) */
    void (*situ)(float *out, const float *g, const float *u, size_t n, float b1, float b2);
    void (*silu)(float *x, size_t n);                        /* in place: x * sigmoid(x) */
    void (*exp)(float *out, const float *x, size_t n);       /* <= 2 ulp over all floats */
    void (*tanh)(float *out, const float *x, size_t n);      /* <= 2 ulp */
    void (*sigmoid)(float *out, const float *x, size_t n);   /* <= 3 ulp, denormal results included */
    void (*mul_sigmoid)(float *x, const float *g, size_t n); /* in place: x * sigmoid(g) */
    /* alpha = exp(lower * sigmoid(a * (z + dt_bias))); alpha may be z */
    void (*decay)(float *alpha, const float *z, const float *dt_bias, size_t n, float a, float lower);
    /* Causal depthwise convolution, then SiLU: out [T][C]; in [K-1+T][C] is the history followed by the new
     * rows; w [C][K], tap K-1 for the current row. out[t][c] = silu(chain over k of w[c][k] * in[t+k][c] from +0). */
    void (*conv_silu)(float *out, const float *in, const float *w, size_t C, size_t K, size_t T);
    float (*max)(const float *x, size_t n); /* exact; unspecified if any is NaN */
    /* In place x = exp(x - max); returns the sum: lane = index mod 16 from +0, folded by halves. */
    float (*exp_sum)(float *x, size_t n, float max);
    /* One token of one KDA head. S [D][D] (key, value), q, k, v, alpha, o [D]; all row operations are chains:
     * S = alpha_i * S; u = S'k; S = fma(k_i, beta*(v - u), S); o = S'q. */
    void (*kda_step)(float *S, const float *q, const float *k, const float *v, const float *alpha, float beta,
                     float *o, size_t D);
    void (*axpy)(float *y, float a, const float *x, size_t n); /* y = fma(a, x, y) */
    void (*add)(float *y, const float *x, size_t n);           /* y = y + x */
    void (*scale)(float *y, float a, size_t n);                /* y = y * a */
    void (*mul)(float *out, const float *a, const float *b, size_t n);
} k3_kernels;

/* The table for `isa` ("scalar", "avx2", "avx512"); NULL: $K3_ISA if set and
 * not empty, else the best this machine has. NULL with K3_EUSAGE in *err names
 * an unknown or unavailable set and the available ones. */
const k3_kernels *k3_kernels_select(const char *isa, k3_err *err);

/* The i-th table available on this machine, from plain to best; NULL past the last. */
const k3_kernels *k3_kernels_available(int i);

/* Whether matrices should stay in the outer caches once they are multiplied: true where a processor will soon write
 * their memory anew, as a read from the page cache does. Speed only, for all tables, at any time. */
extern _Atomic bool k3_keep_weights;

/* The indices of the k largest of s[n] in descending order, the lowest index
 * first on ties; NaN counts as smaller than everything. k <= n. */
void k3_topk(const float *s, size_t n, size_t k, uint32_t *index);

#endif
