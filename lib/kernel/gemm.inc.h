/* SPDX-License-Identifier: Apache-2.0 */
/* Products with many tokens: the multiply-add rate is the limit.
 *
 * A block of rows x tokens takes the columns in slabs. The tokens' slab is
 * packed once a block, the weights of TILE_R rows are widened once a slab, and
 * a register tile runs over both from cache; between slabs its lanes wait in
 * memory. Absent rows, tokens and columns are zeros, so there is one tile size.
 */

enum { BLOCK_R = 144, BLOCK_T = 32, SLAB = 768, STEPS = SLAB / 16 }; /* multiples of TILE_R, TILE_T, 32 */

typedef struct {
    float acc[BLOCK_R / TILE_R][BLOCK_T / TILE_T][TILE_T][TILE_R][16]; /* the lanes of each pair */
    float x[BLOCK_T / TILE_T][STEPS][TILE_T][16];
    float w[STEPS][TILE_R][16];
    compact_row at[BLOCK_R]; /* compact: where the next slab of each row begins */
    uint16_t row[SLAB + 1];
} __attribute__((aligned(64))) gemm_scratch;

/* What one block works on. */
typedef struct {
    const matrix *m;
    size_t r, R; /* its rows r..r+R */
    const float *x;
    size_t ldx, T;
    float *out; /* of row r */
    size_t ldo;
} gemm_block;

/* Columns k..k+m of the tokens; the last tile is filled up with zeros. */
INLINE void pack_tokens(gemm_scratch *g, const gemm_block *b, size_t k, size_t m)
{
    for (size_t t = 0; t < (b->T + TILE_T - 1) / TILE_T * TILE_T; t++)
        for (size_t i = 0; i < m; i += 16) {
            v16 v = t < b->T ? load_part(b->x + t * b->ldx + k + i, m - i < 16 ? m - i : 16) : v_zero();
            v_store(g->x[t / TILE_T][i / 16][t % TILE_T], v);
        }
}

/* A row of weights from its first column, its scales and tables; w NULL: absent. */
typedef struct {
    const uint8_t *w, *s;
    const float (*tables)[16];
} row_part;

/* Columns k..k+m of a row, widened, as row j of a tile. */
INLINE void pack_row(int type, gemm_scratch *g, size_t j, row_part r, size_t k, size_t m)
{
    size_t c = 0;
    for (; r.w && c + 32 <= m; c += 32) {
        v16 first, second;
        load_pair(type, r.w, r.s, r.tables, k + c, &first, &second);
        v_store(g->w[c / 16][j], first);
        v_store(g->w[c / 16 + 1][j], second);
    }
    for (; c < m; c += 16)
        v_store(g->w[c / 16][j], r.w ? load_some(type, r.w, k + c, m - c < 16 ? m - c : 16) : v_zero());
}

/* Columns k..k+m of row i of the block, decoded. */
INLINE const uint8_t *unpack_row(gemm_scratch *g, const gemm_block *b, size_t i, size_t k, size_t m)
{
    if (k == 0)
        g->at[i] = compact_begin(b->m->compact, b->m->row0 + b->r + i);
    compact_decode(b->m->compact, &g->at[i], g->row, m);
    return (const uint8_t *)g->row;
}

/* Columns k..k+m of up to TILE_R rows from row i of the block, widened. */
INLINE void pack_weights(int type, gemm_scratch *g, const gemm_block *b, size_t i, size_t k, size_t m)
{
    if (type == COMPACT) {
        for (size_t j = 0; j < TILE_R; j++)
            pack_row(BF16, g, j, (row_part){i + j < b->R ? unpack_row(g, b, i + j, k, m) : NULL, NULL, NULL}, 0, m);
        return;
    }
    for (size_t j = 0; j < TILE_R; j++) {
        const uint8_t *w = b->m->w + (b->r + i + j) * weight_bytes(type, b->m->n);
        const uint8_t *s = type == MXFP4 ? b->m->scale + (b->r + i + j) * (b->m->n / 32) : NULL;
        pack_row(type, g, j, (row_part){i + j < b->R ? w : NULL, s, b->m->tables}, k, m);
    }
}
/* Lines of weights to ask for while a tile is computed. */
typedef struct {
    const uint8_t *w; /* TILE_R rows, `stride` bytes apart */
    size_t stride;
    size_t line, end; /* 64-byte lines of each row */
} gemm_fetch;

/* Bytes of so many columns from the start of a row. */
INLINE size_t slab_bytes(int type, size_t m)
{
    return type == COMPACT ? m / K3_COMPACT_BLOCK * K3_COMPACT_BLOCK_BYTES : weight_bytes(type, m);
}

/* Part q of Q of the weights that are packed after those of row i, columns k..k+m. */
INLINE gemm_fetch next_weights(int type, const gemm_block *b, size_t i, size_t k, size_t m, size_t q, size_t Q)
{
    const size_t next_i = i + TILE_R < b->R ? i + TILE_R : 0, next_k = next_i ? k : k + m;
    const k3_compact *c = b->m->compact;
    const size_t stride = type == COMPACT ? c->row_bytes : weight_bytes(type, b->m->n), lines = slab_bytes(type, m) / 64 + 1;
    const uint8_t *row = type == COMPACT ? c->block + (b->m->row0 + b->r + next_i) * stride : b->m->w + (b->r + next_i) * stride;
    return (gemm_fetch){row + slab_bytes(type, next_k), stride, lines * q / Q, lines * (q + 1) / Q};
}

/* One register tile over one slab: the lanes start as those in acc, or as zeros, and stay in a. The lines to fetch
 * are spread over the steps, because a burst finds no room in the miss buffers and is dropped. */
INLINE void gemm_tile(v16 a[TILE_T * TILE_R], float (*acc)[TILE_R][16], const float (*w)[TILE_R][16],
                      const float (*x)[TILE_T][16], size_t steps, bool first, gemm_fetch f)
{
    UNROLL
    for (int j = 0; j < TILE_T; j++)
        UNROLL
    for (int i = 0; i < TILE_R; i++)
        a[j * TILE_R + i] = first ? v_zero() : v_load(acc[j][i]);
    const size_t turns = f.end - f.line + 1;
    for (size_t turn = 1, s = 0; turn <= turns; turn++, f.line++) {
        if (turn < turns)
            UNROLL
        for (size_t i = 0; i < TILE_R; i++)
            __builtin_prefetch(f.w + i * f.stride + 64 * f.line);
        for (; s < steps * turn / turns; s++) {
            v16 b[TILE_R];
            UNROLL
            for (int i = 0; i < TILE_R; i++)
                b[i] = v_load(w[s][i]);
            UNROLL
            for (int j = 0; j < TILE_T; j++) {
                v16 c = v_load(x[s][j]);
                UNROLL
                for (int i = 0; i < TILE_R; i++)
                    a[j * TILE_R + i] = v_fma(b[i], c, a[j * TILE_R + i]);
            }
        }
    }
}

/* Folds the lanes of a finished tile into out. */
INLINE void gemm_fold(const gemm_block *b, size_t i, size_t t, const v16 a[TILE_T * TILE_R])
{
    float sum[TILE_T][TILE_R];
    v_sums(a, TILE_T * TILE_R, &sum[0][0]);
    for (size_t j = 0; j < TILE_T && t + j < b->T; j++)
        for (size_t r = 0; r < TILE_R && i + r < b->R; r++)
            b->out[(t + j) * b->ldo + i + r] = sum[j][r];
}

INLINE void gemm_slab(int type, gemm_scratch *g, const gemm_block *b, size_t k, size_t m)
{
    const size_t tiles = (b->T + TILE_T - 1) / TILE_T;
    pack_tokens(g, b, k, m);
    for (size_t i = 0; i < b->R; i += TILE_R) {
        pack_weights(type, g, b, i, k, m);
        for (size_t t = 0; t < tiles; t++) {
            float(*acc)[TILE_R][16] = g->acc[i / TILE_R][t];
            v16 a[TILE_T * TILE_R];
            gemm_tile(a, acc, g->w, g->x[t], (m + 15) / 16, k == 0, next_weights(type, b, i, k, m, t, tiles));
            if (k + m == b->m->n) {
                gemm_fold(b, i, t * TILE_T, a);
                continue;
            }
            UNROLL
            for (int j = 0; j < TILE_T * TILE_R; j++)
                v_store(acc[j / TILE_R][j % TILE_R], a[j]);
        }
    }
}

INLINE void gemm(int type, const product *p, gemm_scratch *g)
{
    const matrix *m = &p->m;
    const size_t grain = type == COMPACT ? K3_COMPACT_BLOCK : 32;
    const size_t slabs = (m->n + SLAB - 1) / SLAB, slab = (m->n / slabs + grain - 1) / grain * grain; /* about equal */
    for (size_t r = 0; r < m->rows; r += BLOCK_R)
        for (size_t t = 0; t < p->T; t += BLOCK_T) {
            gemm_block b = {.m = m,
                            .r = r,
                            .R = m->rows - r < BLOCK_R ? m->rows - r : BLOCK_R,
                            .x = p->x + t * p->ldx,
                            .ldx = p->ldx,
                            .T = p->T - t < BLOCK_T ? p->T - t : BLOCK_T,
                            .out = p->out + t * p->ldo + r,
                            .ldo = p->ldo};
            for (size_t k = 0; k < m->n; k += slab)
                gemm_slab(type, g, &b, k, m->n - k < slab ? m->n - k : slab);
        }
}
