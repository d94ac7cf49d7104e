/* SPDX-License-Identifier: Apache-2.0 */
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
#include "k3_compact.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How weights that come from memory are read; it changes the speed and no bit. A product with few tokens reads
 * `streams` rows side by side, each far from the next, and asks for lines `distance` bytes ahead, counted over all
 * streams. */
typedef enum k3_hint {
    K3_HINT_NONE, /* leave it to the processor */
    K3_HINT_T0,   /* into all caches: where a processor will soon write the same memory anew, it has the lines still */
    K3_HINT_NTA,  /* past the outer caches: weights are used once, and leave room for others */
} k3_hint;

typedef struct k3_reading {
    k3_hint hint;
    uint32_t distance; /* bytes; 0: the usual */
    uint32_t streams;  /* 0: what suits the kernel; more than it has registers for: as many as it can */
} k3_reading;

/* A row-major matrix of weights. */
typedef struct k3_weights {
    const void *data;     /* bf16 or float32 [rows][cols], or MXFP4 codes [rows][cols/2] */
    const uint8_t *scale; /* MXFP4: [rows][cols/32] */
    size_t rows, cols;
} k3_weights;

/* n vectors of float32, `ld` elements apart. */
typedef struct k3_vectors {
    const float *data;
    size_t n, ld;
} k3_vectors;

/* What a product needs beside its operands: memory of the caller's that no other thread uses meanwhile, K3_SCRATCH_BYTES
 * aligned to 64, whose contents mean nothing before and after; and how to read the weights. No kernel needs more than
 * 16 KB of stack. */
enum { K3_SCRATCH_BYTES = 448 << 10 };
typedef struct k3_work {
    void *scratch;
    k3_reading reading;
} k3_work;

/* One token of one KDA head; q, k, v and alpha [D]. */
typedef struct k3_kda {
    const float *q, *k, *v, *alpha;
    float beta;
} k3_kda;

typedef struct k3_kernels {
    const char *name; /* "scalar", "avx2", "avx512", "avx512vbmi2", "neon" */

    /* ---- products with a row-major matrix w; vectors x of w->cols elements, out [x->n][ldo] ---- */

    /* out[t*ldo + r] = dot(w[r], x[t]). T vectors give the bits of T calls with one. bf16 widens exactly. */
    void (*mm_bf16)(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work);
    void (*mm_f32)(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work);

    /* The same with MXFP4 weights, cols a multiple of 32. x in the order of mxfp4_split. Per group of 32 lane l takes
     * the weights of byte l: the even element first, then the odd one. */
    void (*mm_mxfp4)(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work);
    /* The same with the rows row .. row+rows-1 of a compact matrix of bf16: the bits of mm_bf16 with the matrix that it
     * stands for. `streams` counts as there; the distance in bytes of the compact form. */
    void (*mm_compact)(float *out, size_t ldo, const k3_compact *w, size_t row, size_t rows, const k3_vectors *x,
                       const k3_work *work);
    /* Those rows as bf16, out [rows][cols]. */
    void (*compact_decode)(uint16_t *out, const k3_compact *w, size_t row, size_t rows);
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
    /* Several vectors, of m->n elements, against one matrix m [m->n][cols]: out[h*ldo + c] goes on with
     * a[h][i] * m[i][c]. The bits of a->n calls of tmm_f32, with m read once. */
    void (*tmm_f32_multi)(float *out, size_t ldo, const k3_vectors *a, const k3_vectors *m, size_t cols);

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
    /* One token of one KDA head. S [D][D] (key, value), o [D]; all row operations are chains:
     * S = alpha_i * S; u = S'k; S = fma(k_i, beta*(v - u), S); o = S'q. */
    void (*kda_step)(float *S, float *o, const k3_kda *token, size_t D);
    void (*axpy)(float *y, float a, const float *x, size_t n); /* y = fma(a, x, y) */
    void (*add)(float *y, const float *x, size_t n);           /* y = y + x */
    void (*scale)(float *y, float a, size_t n);                /* y = y * a */
    void (*mul)(float *out, const float *a, const float *b, size_t n);
} k3_kernels;

/* The table for `isa`, one of those names; NULL: $K3_ISA if set and
 * not empty, else the best this machine has. NULL with K3_EUSAGE in *err names
 * an unknown or unavailable set and the available ones. */
const k3_kernels *k3_kernels_select(const char *isa, k3_err *err);

/* The i-th table available on this machine, from plain to best; NULL past the last. */
const k3_kernels *k3_kernels_available(int i);

/* The usual reading of this machine's maker, before anything is measured. */
k3_reading k3_reading_usual(void);

/* The best reading on this machine, with that pool, measured in about 50 ms on `bytes` of memory, which are given back
 * afterwards and should be several times its caches: 128 MB are. The usual one unless another is clearly faster.
 * False, and the usual one, if there is no such memory. */
bool k3_reading_measure(const k3_kernels *k, k3_pool *pool, uint64_t bytes, k3_reading *r);
/* Which of n ways to take, of which the first is the usual one and the others must be clearly faster. */
size_t k3_reading_better(const double *seconds, size_t n);
const char *k3_hint_name(k3_hint hint); /* "none", "t0", "nta" */

/* The same where the memory of the weights will soon be written by a processor: lines stay in the outer caches. */
k3_reading k3_reading_kept(k3_reading r);

/* The indices of the k largest of s[n] in descending order, the lowest index
 * first on ties; NaN counts as smaller than everything. k <= n. */
void k3_topk(const float *s, size_t n, size_t k, uint32_t *index);

#ifdef __cplusplus
}
#endif

#endif
