/* Transposed products: every output is a chain down the rows of the matrix. */

/* H vectors against V vectors of columns; the last one has `last` <= 16. */
INLINE void chain(int type, int H, int V, size_t last, float *out, size_t ldo, const float *a, size_t lda,
                  const void *m, size_t rows, size_t ldm)
{
    v16 acc[CHAIN_H][CHAIN_V > CHAIN_V1 ? CHAIN_V : CHAIN_V1];
    UNROLL for (int h = 0; h < H; h++) UNROLL for (int v = 0; v < V; v++) acc[h][v] =
        load_part(out + (size_t)h * ldo + 16 * v, v < V - 1 ? 16 : last);
    for (size_t i = 0; i < rows; i++) {
        v16 b[CHAIN_V > CHAIN_V1 ? CHAIN_V : CHAIN_V1];
        UNROLL for (int v = 0; v < V; v++)
        {
            size_t at = i * ldm + 16 * (size_t)v;
            bool part = v == V - 1 && last < 16;
            if (type == BF16)
                b[v] = part ? v_load_bf16_n((const uint16_t *)m + at, last) : v_load_bf16((const uint16_t *)m + at);
            else
                b[v] = part ? v_load_n((const float *)m + at, last) : v_load((const float *)m + at);
        }
        UNROLL for (int h = 0; h < H; h++)
        {
            v16 s = v_set1(a[(size_t)h * lda + i]);
            UNROLL for (int v = 0; v < V; v++) acc[h][v] = v_fma(s, b[v], acc[h][v]);
        }
    }
    UNROLL for (int h = 0; h < H; h++) UNROLL for (int v = 0; v < V; v++)
        store_part(out + (size_t)h * ldo + 16 * v, acc[h][v], v < V - 1 ? 16 : last);
}

/* All columns for H vectors, V vectors of columns at a time. */
INLINE void chain_cols(int type, int H, int V, float *out, size_t ldo, const float *a, size_t lda, const void *m,
                       size_t rows, size_t cols, size_t ldm)
{
    const size_t size = type == BF16 ? 2 : 4;
    size_t c = 0;
    for (; c + 16 * (size_t)V <= cols; c += 16 * (size_t)V)
        chain(type, H, V, 16, out + c, ldo, a, lda, (const char *)m + c * size, rows, ldm);
    for (; c < cols; c += 16)
        chain(type, H, 1, cols - c < 16 ? cols - c : 16, out + c, ldo, a, lda, (const char *)m + c * size, rows, ldm);
}

static void tmm_bf16(float *out, const float *a, const uint16_t *m, size_t rows, size_t cols)
{
    memset(out, 0, cols * sizeof *out);
    chain_cols(BF16, 1, CHAIN_V1, out, cols, a, rows, m, rows, cols, cols);
}

static void tmm_f32(float *out, const float *a, const float *m, size_t rows, size_t cols, size_t ldm)
{
    chain_cols(F32, 1, CHAIN_V1, out, cols, a, rows, m, rows, cols, ldm);
}

/* Rows go in blocks that stay in cache while all H vectors use them. */
static void tmm_f32_multi(float *out, size_t ldo, const float *a, size_t lda, size_t H, const float *m, size_t rows,
                          size_t cols, size_t ldm)
{
    const size_t block = 64;
    for (size_t i = 0; i < rows; i += block) {
        size_t n = rows - i < block ? rows - i : block, h = 0;
        for (; h + CHAIN_H <= H; h += CHAIN_H)
            chain_cols(F32, CHAIN_H, CHAIN_V, out + h * ldo, ldo, a + h * lda + i, lda, m + i * ldm, n, cols, ldm);
        for (; h < H; h++)
            chain_cols(F32, 1, CHAIN_V1, out + h * ldo, ldo, a + h * lda + i, lda, m + i * ldm, n, cols, ldm);
    }
}

/* V vectors of columns of one head: both sweeps while the columns are in cache. */
INLINE void kda_cols(int V, size_t last, float *S, const float *q, const float *k, const float *v, const float *alpha,
                     float beta, float *o, size_t D)
{
    v16 d[CHAIN_V], sum[CHAIN_V];
    UNROLL for (int j = 0; j < V; j++) d[j] = sum[j] = v_zero();
    for (size_t i = 0; i < D; i++) {
        v16 ai = v_set1(alpha[i]), ki = v_set1(k[i]);
        UNROLL for (int j = 0; j < V; j++)
        {
            v16 s = load_part(S + i * D + 16 * (size_t)j, j < V - 1 ? 16 : last);
            d[j] = v_fma(ki, v_mul(ai, s), d[j]);
        }
    }
    UNROLL for (int j = 0; j < V; j++)
    {
        v16 vj = load_part(v + 16 * j, j < V - 1 ? 16 : last);
        d[j] = v_mul(v_set1(beta), v_sub(vj, d[j]));
    }
    for (size_t i = 0; i < D; i++) {
        v16 ai = v_set1(alpha[i]), ki = v_set1(k[i]), qi = v_set1(q[i]);
        UNROLL for (int j = 0; j < V; j++)
        {
            float *at = S + i * D + 16 * (size_t)j;
            v16 s = v_fma(ki, d[j], v_mul(ai, load_part(at, j < V - 1 ? 16 : last)));
            store_part(at, s, j < V - 1 ? 16 : last);
            sum[j] = v_fma(qi, s, sum[j]);
        }
    }
    UNROLL for (int j = 0; j < V; j++) store_part(o + 16 * j, sum[j], j < V - 1 ? 16 : last);
}

static void kda_step(float *S, const float *q, const float *k, const float *v, const float *alpha, float beta,
                     float *o, size_t D)
{
    size_t c = 0;
    for (; c + 16 * CHAIN_V <= D; c += 16 * CHAIN_V)
        kda_cols(CHAIN_V, 16, S + c, q, k, v + c, alpha, beta, o + c, D);
    for (; c < D; c += 16)
        kda_cols(1, D - c < 16 ? D - c : 16, S + c, q, k, v + c, alpha, beta, o + c, D);
}
