/* Products with row-major matrices: register tiles of rows and tokens for a
 * few tokens, where memory is the limit; gemm.inc.h for more.
 *
 * Row i of a tile lies `gap` rows from row i-1, far away, so that each of the
 * few streams is sequential through the whole matrix. Adjacent rows would make
 * every stream jump at each row's end, and the hardware prefetcher needs long
 * to follow a new one: 28 against 38 GB/s.
 *
 * Weights are used once and prefetched past the outer caches: a line left there
 * would have to be invalidated when storage next writes its tile buffer. Not
 * with k3_keep_weights: a processor writes faster to lines that it still has.
 */

typedef struct {
    const uint8_t *w;     /* row 0 */
    const uint8_t *scale; /* MXFP4: scale bytes of row 0 */
    size_t rows, n;
    const float (*tables)[16]; /* MXFP4: by scale byte */
} matrix;

enum { BF16, F32, MXFP4 };

/* Bytes of k weights. */
INLINE size_t weight_bytes(int type, size_t k)
{
    return type == BF16 ? 2 * k : type == F32 ? 4 * k : k / 2;
}

/* 32 weights from column k of the row at w, s, in the order of their lanes. */
INLINE void load_pair(int type, const uint8_t *w, const uint8_t *s, const float (*tables)[16], size_t k, v16 *a,
                      v16 *b)
{
    if (type == MXFP4) {
        v_mxfp4(w + k / 2, tables[s[k / 32]], a, b);
    } else if (type == BF16) {
        v_load_bf16_pair((const uint16_t *)w + k, a, b);
    } else {
        *a = v_load((const float *)w + k);
        *b = v_load((const float *)w + k + 16);
    }
}

/* m <= 16 weights; absent ones are +0. */
INLINE v16 load_some(int type, const uint8_t *w, size_t k, size_t m)
{
    if (type == BF16)
        return m < 16 ? v_load_bf16_n((const uint16_t *)w + k, m) : v_load_bf16((const uint16_t *)w + k);
    return load_part((const float *)w + k, m);
}

typedef struct {
    const uint8_t *w[TILE_MAX], *s[TILE_MAX]; /* the rows */
    const float (*tables)[16];
    const float *x;                           /* the tokens, ldx apart */
    size_t ldx;
} tile_in;

#ifdef V_PAIRS
/* Whether pair_step does it: MXFP4 with two rows to a vector. */
INLINE bool paired(int type, int R)
{
    return type == MXFP4 && R % 2 == 0;
}

/* 32 columns from k. Until unpair, of each two accumulators the first has lanes 0..7 of both rows, the second
 * lanes 8..15. */
INLINE void pair_step(int R, int M, const tile_in *in, size_t k, v16 acc[TILE_MAX][TILE_MAX])
{
    UNROLL
    for (int i = 0; i + 1 < R; i += 2) {
        const v_pair p = v_pair_load(in->w[i] + k / 2, in->tables[in->s[i][k / 32]], in->w[i + 1] + k / 2,
                                     in->tables[in->s[i + 1][k / 32]]);
        UNROLL
        for (int odd = 0; odd < 2; odd++) {
            const mxfp4_bytes b = v_pair_look_up(&p, odd);
            UNROLL
            for (int h = 0; h < 2; h++) {
                const v16 w = mxfp4_widen(b, h);
                const float *x = in->x + k + 16 * odd + 8 * h;
                UNROLL
                for (int j = 0; j < M; j++)
                    acc[i + h][j] = v_fma(w, v_load_twice(x + (size_t)j * in->ldx), acc[i + h][j]);
            }
        }
    }
}

INLINE void unpair(int R, int M, v16 acc[TILE_MAX][TILE_MAX])
{
    UNROLL
    for (int i = 0; i + 1 < R; i += 2)
        UNROLL
    for (int j = 0; j < M; j++)
        v_unpair(&acc[i][j], &acc[i + 1][j]);
}
#endif

/* 32 columns from k: R x M multiply-adds of two vectors each. The first token takes
 * the rows as they are widened, so that one token needs few registers. */
INLINE void tile_step(int type, int R, int M, const tile_in *in, size_t k, v16 acc[TILE_MAX][TILE_MAX])
{
#ifdef V_PAIRS
    if (paired(type, R)) {
        pair_step(R, M, in, k, acc);
        return;
    }
#endif
    v16 a[TILE_MAX], b[TILE_MAX], x0 = v_load(in->x + k), x1 = v_load(in->x + k + 16);
    UNROLL
    for (int i = 0; i < R; i++) {
        load_pair(type, in->w[i], in->s[i], in->tables, k, &a[i], &b[i]);
        acc[i][0] = v_fma(a[i], x0, acc[i][0]);
        acc[i][0] = v_fma(b[i], x1, acc[i][0]);
    }
    UNROLL
    for (int j = 1; j < M; j++) {
        x0 = v_load(in->x + (size_t)j * in->ldx + k);
        x1 = v_load(in->x + (size_t)j * in->ldx + k + 16);
        UNROLL
        for (int i = 0; i < R; i++) {
            acc[i][j] = v_fma(a[i], x0, acc[i][j]);
            acc[i][j] = v_fma(b[i], x1, acc[i][j]);
        }
    }
}

/* The last n - k < 32 columns. */
INLINE void tile_tail(int type, int R, int M, const tile_in *in, size_t k, size_t n, v16 acc[TILE_MAX][TILE_MAX])
{
    for (; k < n; k += 16) {
        size_t m = n - k < 16 ? n - k : 16;
        UNROLL
        for (int i = 0; i < R; i++) {
            v16 a = load_some(type, in->w[i], k, m);
            UNROLL
            for (int j = 0; j < M; j++)
                acc[i][j] = v_fma(a, load_part(in->x + (size_t)j * in->ldx + k, m), acc[i][j]);
        }
    }
}

INLINE void prefetch(const uint8_t *p, bool keep)
{
    if (keep)
        __builtin_prefetch(p, 0, 3);
    else
        __builtin_prefetch(p, 0, 0);
}

/* Rows r, r + gap, ... r + (R-1) gap against M tokens. */
INLINE void tile(int type, int R, int M, float *out, size_t ldo, const matrix *m, size_t r, size_t gap,
                 const float *x, size_t ldx)
{
    enum { BLOCK = 128, LINE = 64 };
    const size_t n = m->n;
    const bool keep = atomic_load_explicit(&k3_keep_weights, memory_order_relaxed);
    tile_in in = {.tables = m->tables, .x = x, .ldx = ldx};
    v16 acc[TILE_MAX][TILE_MAX];
    UNROLL
    for (int i = 0; i < R; i++) {
        in.w[i] = m->w + (r + (size_t)i * gap) * weight_bytes(type, n);
        in.s[i] = type == MXFP4 ? m->scale + (r + (size_t)i * gap) * (n / 32) : NULL;
        UNROLL
        for (int j = 0; j < M; j++)
            acc[i][j] = v_zero();
    }
    size_t k = 0;
    for (; k + BLOCK <= n; k += BLOCK) {
        UNROLL
        for (int i = 0; i < R; i++)
            UNROLL
        for (size_t b = 0; b < weight_bytes(type, BLOCK); b += LINE)
            prefetch(in.w[i] + weight_bytes(type, k) + b + AHEAD / R, keep);
        for (size_t u = 0; u < BLOCK; u += 32)
            tile_step(type, R, M, &in, k + u, acc);
    }
    for (; k + 32 <= n; k += 32)
        tile_step(type, R, M, &in, k, acc);
    if (type != MXFP4)
        tile_tail(type, R, M, &in, k, n, acc);
#ifdef V_PAIRS
    if (paired(type, R))
        unpair(R, M, acc);
#endif
    UNROLL
    for (int i = 0; i < R; i++)
        UNROLL
    for (int j = 0; j < M; j++)
        out[(size_t)j * ldo + r + (size_t)i * gap] = v_sum(acc[i][j]);
}

/* All rows against M tokens, R streams of rows at a time. */
INLINE void rows_by(int type, int R, int M, float *out, size_t ldo, const matrix *m, const float *x, size_t ldx)
{
    const size_t gap = m->rows / (size_t)R;
    for (size_t r = 0; r < gap; r++)
        tile(type, R, M, out, ldo, m, r, gap, x, ldx);
    for (size_t r = gap * (size_t)R; r < m->rows; r++)
        for (size_t j = 0; j < (size_t)M; j++)
            tile(type, 1, 1, out + j * ldo, ldo, m, r, 0, x + j * ldx, ldx);
}

#include "gemm.inc.h"

INLINE void mm(int type, float *out, size_t ldo, const matrix *m, const float *x, size_t ldx, size_t T)
{
#define FEW(M)                                                                                                       \
    if (T == M && M <= FEW_T) {                                                                                      \
        rows_by(type, few_rows(type == MXFP4, M), M, out, ldo, m, x, ldx);                                           \
        return;                                                                                                      \
    }
    FEW(1)
    FEW(2)
    FEW(3)
    FEW(4)
    FEW(5)
    FEW(6)
#undef FEW
    gemm(type, out, ldo, m, x, ldx, T);
}

static void mm_bf16(float *out, size_t ldo, const uint16_t *w, size_t rows, size_t n, const float *x, size_t ldx,
                    size_t T)
{
    mm(BF16, out, ldo, &(matrix){.w = (const uint8_t *)w, .rows = rows, .n = n}, x, ldx, T);
}

static void mm_f32(float *out, size_t ldo, const float *w, size_t rows, size_t n, const float *x, size_t ldx,
                   size_t T)
{
    mm(F32, out, ldo, &(matrix){.w = (const uint8_t *)w, .rows = rows, .n = n}, x, ldx, T);
}

static void mm_mxfp4(float *out, size_t ldo, const uint8_t *packed, const uint8_t *scale, size_t rows, size_t n,
                     const float *xs, size_t ldx, size_t T)
{
    float tables[256][16] __attribute__((aligned(64)));
    for (int s = 0; s < 256; s++)
        v_mxfp4_table((uint8_t)s, tables[s]);
    mm(MXFP4, out, ldo, &(matrix){packed, scale, rows, n, (const float(*)[16])tables}, xs, ldx, T);
}

static void mxfp4_split(float *xs, const float *x, size_t n)
{
    for (size_t g = 0; g < n; g += 32)
        for (size_t i = 0; i < 16; i++) {
            xs[g + i] = x[g + 2 * i];
            xs[g + 16 + i] = x[g + 2 * i + 1];
        }
}

static void mxfp4_decode(float *out, const uint8_t *packed, const uint8_t *scale, size_t n)
{
    for (size_t g = 0; g < n; g += 32) {
        v16 even, odd;
        float half[32], table[16];
        v_mxfp4_table(scale[g / 32], table);
        v_mxfp4(packed + g / 2, table, &even, &odd);
        v_store(half, even);
        v_store(half + 16, odd);
        for (size_t i = 0; i < 16; i++) {
            out[g + 2 * i] = half[i];
            out[g + 2 * i + 1] = half[16 + i];
        }
    }
}

static float dot(const float *a, const float *b, size_t n)
{
    float out;
    tile(F32, 1, 1, &out, 1, &(matrix){.w = (const uint8_t *)a, .rows = 1, .n = n}, 0, 0, b, n);
    return out;
}
