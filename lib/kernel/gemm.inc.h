/* Products with many tokens: the multiply-add rate is the limit.
 *
 * Blocks of rows x tokens keep all their lanes in memory while the columns go
 * by in slabs that fit the first-level cache: the tokens' slab is packed once
 * a block, the weights of TILE_R rows are widened once a slab, and a register
 * tile runs over both. Rows, tokens and columns that are absent are zeros, so
 * there is one tile size and no tail.
 */

enum { BLOCK_R = 96, BLOCK_T = 32, SLAB = 256 }; /* BLOCK_R a multiple of 16 and TILE_R, BLOCK_T of TILE_T */

typedef struct {
    float acc[BLOCK_T][BLOCK_R][16]; /* the lanes of each (token, row) */
    float x[BLOCK_T / TILE_T][SLAB / 16][TILE_T][16];
    float w[SLAB / 16][TILE_R][16];
} __attribute__((aligned(64))) gemm_block;

/* Columns k..k+m of T tokens; the tile is filled up with zeros. */
INLINE void pack_tokens(gemm_block *g, const float *x, size_t ldx, size_t T, size_t k, size_t m)
{
    for (size_t t = 0; t < (T + TILE_T - 1) / TILE_T * TILE_T; t++)
        for (size_t i = 0; i < m; i += 16) {
            v16 v = t < T ? load_part(x + t * ldx + k + i, m - i < 16 ? m - i : 16) : v_zero();
            v_store(g->x[t / TILE_T][i / 16][t % TILE_T], v);
        }
}

/* Columns k..k+m of R rows from row r, widened; prefetches the rows after them. */
INLINE void pack_weights(int type, gemm_block *g, const matrix *mat, size_t r, size_t R, size_t k, size_t m)
{
    for (size_t i = 0; i < TILE_R; i++) {
        const uint8_t *w = mat->w + (r + i) * weight_bytes(type, mat->n);
        const uint8_t *s = type == MXFP4 ? mat->scale + (r + i) * (mat->n / 32) : NULL;
        size_t j = 0;
        for (size_t b = 0; b < weight_bytes(type, m); b += 64)
            __builtin_prefetch(w + TILE_R * weight_bytes(type, mat->n) + weight_bytes(type, k) + b);
        for (; i < R && j + 32 <= m; j += 32) {
            v16 a, b;
            load_pair(type, w, s, k + j, &a, &b);
            v_store(g->w[j / 16][i], a);
            v_store(g->w[j / 16 + 1][i], b);
        }
        for (; j < m; j += 16)
            v_store(g->w[j / 16][i], i < R ? load_some(type, w, k + j, m - j < 16 ? m - j : 16) : v_zero());
    }
}

/* One register tile over one slab. acc and its tokens are BLOCK_R vectors apart. */
INLINE void gemm_tile(float acc[][BLOCK_R][16], size_t r, const float (*w)[TILE_R][16], const float (*x)[TILE_T][16],
                      size_t steps, bool first)
{
    v16 a[TILE_R][TILE_T];
    UNROLL
    for (int j = 0; j < TILE_T; j++)
        UNROLL
    for (int i = 0; i < TILE_R; i++)
        a[i][j] = first ? v_zero() : v_load(acc[j][r + (size_t)i]);
    for (size_t s = 0; s < steps; s++) {
        v16 b[TILE_R];
        UNROLL
        for (int i = 0; i < TILE_R; i++)
            b[i] = v_load(w[s][i]);
        UNROLL
        for (int j = 0; j < TILE_T; j++) {
            v16 c = v_load(x[s][j]);
            UNROLL
            for (int i = 0; i < TILE_R; i++)
                a[i][j] = v_fma(b[i], c, a[i][j]);
        }
    }
    UNROLL
    for (int j = 0; j < TILE_T; j++)
        UNROLL
    for (int i = 0; i < TILE_R; i++)
        v_store(acc[j][r + (size_t)i], a[i][j]);
}

/* R <= BLOCK_R rows from row r against T <= BLOCK_T tokens. */
INLINE void gemm_blocked(int type, gemm_block *g, float *out, size_t ldo, const matrix *mat, size_t r, size_t R,
                         const float *x, size_t ldx, size_t T)
{
    for (size_t k = 0; k < mat->n; k += SLAB) {
        size_t m = mat->n - k < SLAB ? mat->n - k : SLAB;
        pack_tokens(g, x, ldx, T, k, m);
        for (size_t i = 0; i < R; i += TILE_R) {
            pack_weights(type, g, mat, r + i, R - i, k, m);
            for (size_t t = 0; t < T; t += TILE_T)
                gemm_tile(g->acc + t, i, g->w, g->x[t / TILE_T], (m + 15) / 16, k == 0);
        }
    }
    for (size_t t = 0; t < T; t++)
        for (size_t i = 0; i < R; i += 16)
            store_part(out + t * ldo + r + i, v_sum16(g->acc[t] + i), R - i < 16 ? R - i : 16);
}

INLINE void gemm(int type, float *out, size_t ldo, const matrix *mat, const float *x, size_t ldx, size_t T)
{
    gemm_block g;
    for (size_t r = 0; r < mat->rows; r += BLOCK_R)
        for (size_t t = 0; t < T; t += BLOCK_T)
            gemm_blocked(type, &g, out + t * ldo, ldo, mat, r, mat->rows - r < BLOCK_R ? mat->rows - r : BLOCK_R,
                         x + t * ldx, ldx, T - t < BLOCK_T ? T - t : BLOCK_T);
}
