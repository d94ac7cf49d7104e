/* SPDX-License-Identifier: Apache-2.0 */
/* Products with row-major matrices and few tokens, where memory is the limit: register tiles of rows and tokens.
 *
 * Row i of a tile lies `gap` rows from row i-1, far away, so that each of the
 * few streams is sequential through the whole matrix. Adjacent rows would make
 * every stream jump at each row's end, and the hardware prefetcher needs long
 * to follow a new one: 28 against 38 GB/s.
 */

typedef struct {
    const uint8_t *w;     /* row 0 */
    const uint8_t *scale; /* MXFP4: scale bytes of row 0 */
    size_t rows, n;
    const float (*tables)[16]; /* MXFP4: by scale byte */
    const k3_compact *compact; /* instead of w: all of it, of which the matrix is the rows from row0 */
    size_t row0;
} matrix;

/* A matrix against T tokens. */
typedef struct {
    matrix m;
    const float *x; /* [T][ldx] */
    size_t ldx, T;
    float *out; /* [T][ldo] */
    size_t ldo;
    k3_reading reading; /* distance and hint as they are meant */
    void *rows;         /* compact: room for decoded rows */
} product;

enum { BF16, F32, MXFP4, COMPACT };

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

/* The next BLOCK columns of R rows, `ahead` bytes from column k. */
enum { BLOCK = 128, LINE = 64 };
INLINE void prefetch(int type, int R, const tile_in *in, size_t k, const k3_reading *how)
{
    const size_t at = weight_bytes(type, k) + how->distance / (uint32_t)R;
#define ASK(locality)                                                                                                \
    UNROLL                                                                                                           \
    for (int i = 0; i < R; i++)                                                                                      \
        UNROLL                                                                                                       \
    for (size_t b = 0; b < weight_bytes(type, BLOCK); b += LINE)                                                     \
    __builtin_prefetch(in->w[i] + at + b, 0, locality)
    if (how->hint == K3_HINT_NTA)
        ASK(0);
    else if (how->hint == K3_HINT_T0)
        ASK(3);
#undef ASK
}

/* Rows r, r + gap, ... r + (R-1) gap against M tokens from token t. */
INLINE void tile(int type, int R, int M, const product *p, size_t r, size_t gap, size_t t)
{
    const matrix *m = &p->m;
    const size_t n = m->n;
    const k3_reading how = p->reading;
    tile_in in = {.tables = m->tables, .x = p->x + t * p->ldx, .ldx = p->ldx};
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
        prefetch(type, R, &in, k, &how);
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
        p->out[(t + (size_t)j) * p->ldo + r + (size_t)i * gap] = v_sum(acc[i][j]);
}

static float dot(const float *a, const float *b, size_t n)
{
    float out;
    const product p = {.m = {.w = (const uint8_t *)a, .rows = 1, .n = n}, .x = b, .T = 1, .out = &out};
    tile(F32, 1, 1, &p, 0, 0, 0);
    return out;
}
