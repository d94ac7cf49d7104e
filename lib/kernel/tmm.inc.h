/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed products: every output is a chain down the rows of the matrix. */

/* One vector against N rows, ldm elements apart: all columns in the order of memory, out in cache. */
INLINE void chain_rows(int type, int N, float *out, const float *a, const uint8_t *m, size_t cols, size_t ldm)
{
    const uint8_t *row[CHAIN_N];
    v16 s[CHAIN_N];
    size_t c = 0;
    UNROLL
    for (int i = 0; i < N; i++) {
        row[i] = m + (size_t)i * weight_bytes(type, ldm);
        s[i] = v_set1(a[i]);
    }
    for (; c + 32 <= cols; c += 32) {
        v16 p = v_load(out + c), q = v_load(out + c + 16), x, y;
        UNROLL
        for (int i = 0; i < N; i++) {
            UNROLL
            for (size_t b = 0; b < weight_bytes(type, 32); b += 64)
                __builtin_prefetch(row[i] + weight_bytes(type, (size_t)N * ldm + c) + b);
            load_pair(type, row[i], NULL, NULL, c, &x, &y);
            p = v_fma(s[i], x, p);
            q = v_fma(s[i], y, q);
        }
        v_store(out + c, p);
        v_store(out + c + 16, q);
    }
    for (; c < cols; c += 16) {
        size_t n = cols - c < 16 ? cols - c : 16;
        v16 p = load_part(out + c, n);
        UNROLL
        for (int i = 0; i < N; i++)
            p = v_fma(s[i], load_some(type, row[i], c, n), p);
        store_part(out + c, p, n);
    }
}

INLINE void chain(int type, float *out, const float *a, const void *m, size_t rows, size_t cols, size_t ldm)
{
    const uint8_t *row = m;
    size_t i = 0;
    for (; i + CHAIN_N <= rows; i += CHAIN_N)
        chain_rows(type, CHAIN_N, out, a + i, row + i * weight_bytes(type, ldm), cols, ldm);
    for (; i < rows; i++)
        chain_rows(type, 1, out, a + i, row + i * weight_bytes(type, ldm), cols, ldm);
}

static void tmm_bf16(float *out, const float *a, const uint16_t *m, size_t rows, size_t cols)
{
    memset(out, 0, cols * sizeof *out);
    chain(BF16, out, a, m, rows, cols, cols);
}

static void tmm_f32(float *out, const float *a, const float *m, size_t rows, size_t cols, size_t ldm)
{
    chain(F32, out, a, m, rows, cols, ldm);
}

/* Vectors a against a block of rows of m; out as in tmm_f32_multi. */
typedef struct {
    float *out;
    size_t ldo;
    const float *a;
    size_t lda;
    const float *m;
    size_t rows, ldm;
    size_t ahead, from, to; /* meanwhile vectors from..to of the same columns are fetched, `ahead` rows further on */
} chains;

/* H <= CHAIN_H vectors against V vectors of columns from column c, of which the last has `last` <= 16. */
INLINE void chain_tile(int H, int V, const chains *b, size_t c, size_t last)
{
    const float *m = b->m + c;
    float *out = b->out + c;
    v16 acc[CHAIN_H][CHAIN_V];
    UNROLL
    for (int h = 0; h < H; h++)
        UNROLL
        for (int v = 0; v < V; v++)
            acc[h][v] = load_part(out + (size_t)h * b->ldo + 16 * v, v < V - 1 ? 16 : last);
    for (size_t i = 0; i < b->rows; i++) {
        v16 w[CHAIN_V];
        for (size_t v = b->from; V == CHAIN_V && v < b->to; v++)
            __builtin_prefetch(m + (i + b->ahead) * b->ldm + 16 * v);
        UNROLL
        for (int v = 0; v < V; v++)
            w[v] = load_part(m + i * b->ldm + 16 * v, v < V - 1 ? 16 : last);
        UNROLL
        for (int h = 0; h < H; h++) {
            v16 s = v_set1(b->a[(size_t)h * b->lda + i]);
            UNROLL
            for (int v = 0; v < V; v++)
                acc[h][v] = v_fma(s, w[v], acc[h][v]);
        }
    }
    UNROLL
    for (int h = 0; h < H; h++)
        UNROLL
        for (int v = 0; v < V; v++)
            store_part(out + (size_t)h * b->ldo + 16 * v, acc[h][v], v < V - 1 ? 16 : last);
}

/* H vectors against all columns of a block of rows. */
INLINE void chain_group(int H, const chains *b, size_t cols)
{
    const size_t strip = 16 * CHAIN_V;
    size_t c = 0;
    for (; c + strip <= cols; c += strip)
        chain_tile(H, CHAIN_V, b, c, 16);
    for (; c < cols; c += 16)
        chain_tile(H, 1, b, c, cols - c < 16 ? cols - c : 16);
}

/* A block of rows stays in cache while all vectors use it; meanwhile the next one is fetched, evenly. */
static void tmm_f32_multi(float *out, size_t ldo, const k3_vectors *a, const k3_vectors *m, size_t cols)
{
    const size_t block = 64, groups = a->n / CHAIN_H, left = a->n % CHAIN_H;
    for (size_t i = 0; i < m->n; i += block) {
        chains b = {out, ldo, a->data + i, a->ld, m->data + i * m->ld, m->n - i < block ? m->n - i : block, m->ld,
                    .ahead = block};
        for (size_t g = 0; g < groups; g++) {
            b.from = CHAIN_V * g / groups;
            b.to = CHAIN_V * (g + 1) / groups;
            chain_group(CHAIN_H, &b, cols);
            b.out += CHAIN_H * ldo;
            b.a += CHAIN_H * a->ld;
        }
        b.from = 0;
        b.to = groups ? 0 : CHAIN_V;
#define LEFT(N)                                                                                                      \
    if (N < CHAIN_H && left == N)                                                                                    \
    chain_group(N < CHAIN_H ? N : 1, &b, cols)
        LEFT(2);
        LEFT(3);
        LEFT(4);
        LEFT(5);
#undef LEFT
        if (left == 1)
            chain(F32, b.out, b.a, b.m, b.rows, cols, b.ldm);
    }
}

/* V vectors of columns of one head from column c, of which the last has `last` <= 16: both sweeps while the columns are
 * in cache. */
INLINE void kda_cols(int V, float *S, float *o, const k3_kda *token, size_t D, size_t c, size_t last)
{
    const float *q = token->q, *k = token->k, *alpha = token->alpha;
    v16 d[CHAIN_V], sum[CHAIN_V];
    UNROLL for (int j = 0; j < V; j++) d[j] = sum[j] = v_zero();
    for (size_t i = 0; i < D; i++) {
        v16 ai = v_set1(alpha[i]), ki = v_set1(k[i]);
        UNROLL for (int j = 0; j < V; j++)
        {
            v16 s = load_part(S + i * D + c + 16 * (size_t)j, j < V - 1 ? 16 : last);
            d[j] = v_fma(ki, v_mul(ai, s), d[j]);
        }
    }
    UNROLL for (int j = 0; j < V; j++)
    {
        v16 vj = load_part(token->v + c + 16 * j, j < V - 1 ? 16 : last);
        d[j] = v_mul(v_set1(token->beta), v_sub(vj, d[j]));
    }
    for (size_t i = 0; i < D; i++) {
        v16 ai = v_set1(alpha[i]), ki = v_set1(k[i]), qi = v_set1(q[i]);
        UNROLL for (int j = 0; j < V; j++)
        {
            float *at = S + i * D + c + 16 * (size_t)j;
            v16 s = v_fma(ki, d[j], v_mul(ai, load_part(at, j < V - 1 ? 16 : last)));
            store_part(at, s, j < V - 1 ? 16 : last);
            sum[j] = v_fma(qi, s, sum[j]);
        }
    }
    UNROLL for (int j = 0; j < V; j++) store_part(o + c + 16 * j, sum[j], j < V - 1 ? 16 : last);
}

static void kda_step(float *S, float *o, const k3_kda *token, size_t D)
{
    size_t c = 0;
    for (; c + 16 * CHAIN_V <= D; c += 16 * CHAIN_V)
        kda_cols(CHAIN_V, S, o, token, D, c, 16);
    for (; c < D; c += 16)
        kda_cols(1, S, o, token, D, c, D - c < 16 ? D - c : 16);
}
