/* SPDX-License-Identifier: Apache-2.0 */
/* Products with compact matrices: k3_compact.h.
 *
 * A stretch of each row is decoded into the innermost cache and multiplied from
 * there, before the next one. v_compact decodes 64 weights in registers with 0
 * for the exponents of escapes, which are put in afterwards: nearly every block
 * has some, and few have more than four, so that four at a time without a
 * branch is faster than a loop that ends where nobody can foretell.
 */

enum { STRETCH = 512, STRETCH_BLOCKS = STRETCH / K3_COMPACT_BLOCK };

/* Where one row stands: its next block and its next escape. */
typedef struct {
    const uint8_t *block, *escape;
} compact_row;

INLINE compact_row compact_begin(const k3_compact *c, size_t row)
{
    uint32_t first;
    memcpy(&first, c->offset + 4 * row, sizeof first);
    return (compact_row){c->block + row * c->row_bytes, c->escape + (first < c->escapes ? first : c->escapes)};
}

/* The next 64 weights as bf16; out has room for one more, which may change. */
INLINE void compact_block(const k3_compact *c, compact_row *at, v_exponents table, uint16_t *out)
{
    const uint8_t *end = c->escape + c->escapes;
#ifdef V_EXPAND
    const uint64_t escapes = v_compact(out, at->block, table, at->escape);
#else
    const uint64_t escapes = v_compact(out, at->block, table);
    const uint8_t *e = at->escape;
    uint64_t m = escapes;
    do {
        UNROLL
        for (int i = 0; i < 4; i++) {
            out[m ? __builtin_ctzll(m) : 64] |= (uint16_t)(e[i] << 7);
            m &= m - 1;
        }
        e += 4;
    } while (m);
#endif
    at->block += K3_COMPACT_BLOCK_BYTES;
    at->escape += __builtin_popcountll(escapes);
    at->escape = at->escape < end ? at->escape : end; /* where the bytes are not what was written */
}

/* n weights from where the row stands, a multiple of 64 unless they are its last, into out [n rounded up to 64, + 1]. */
static __attribute__((noinline)) void compact_decode(const k3_compact *c, compact_row *at, uint16_t *out, size_t n)
{
    const v_exponents table = v_exponents_load(c->exponent);
    for (size_t i = 0; i < n; i += K3_COMPACT_BLOCK)
        compact_block(c, at, table, out + i);
}

static void compact_rows_decode(uint16_t *out, const k3_compact *c, size_t row, size_t rows)
{
    uint16_t some[STRETCH + 1];
    for (size_t r = row; r < row + rows; r++) {
        compact_row at = compact_begin(c, r);
        for (size_t k = 0; k < c->cols; k += STRETCH) {
            const size_t n = c->cols - k < STRETCH ? c->cols - k : STRETCH;
            compact_decode(c, &at, some, n);
            memcpy(out, some, n * sizeof *out);
            out += n;
        }
    }
}

/* Decoded stretches of the rows of a tile, and of one row of a slab of gemm.inc.h. */
typedef uint16_t compact_rows[TILE_MAX][STRETCH + 64];

INLINE void compact_prefetch(const compact_row *at, size_t distance, k3_hint hint)
{
    UNROLL
    for (size_t b = 0; b < STRETCH_BLOCKS * K3_COMPACT_BLOCK_BYTES; b += LINE)
        if (hint == K3_HINT_NTA)
            __builtin_prefetch(at->block + distance + b, 0, 0);
        else if (hint == K3_HINT_T0)
            __builtin_prefetch(at->block + distance + b, 0, 3);
}

/* Rows r, r + gap, ... r + (R-1) gap against M tokens from token t. */
INLINE void compact_tile(int R, int M, const product *p, size_t r, size_t gap, size_t t)
{
    const k3_compact *c = p->m.compact;
    uint16_t(*row)[STRETCH + 64] = p->rows;
    compact_row at[TILE_MAX];
    tile_in in = {.ldx = p->ldx};
    v16 acc[TILE_MAX][TILE_MAX];
    UNROLL
    for (int i = 0; i < R; i++) {
        at[i] = compact_begin(c, p->m.row0 + r + (size_t)i * gap);
        in.w[i] = (const uint8_t *)row[i];
        UNROLL
        for (int j = 0; j < M; j++)
            acc[i][j] = v_zero();
    }
    for (size_t k = 0; k < p->m.n; k += STRETCH) {
        const size_t n = p->m.n - k < STRETCH ? p->m.n - k : STRETCH;
        for (int i = 0; i < R; i++) {
            compact_prefetch(&at[i], p->reading.distance / (uint32_t)R, p->reading.hint);
            compact_decode(c, &at[i], row[i], n);
        }
        in.x = p->x + t * p->ldx + k;
        size_t u = 0;
        for (; u + 32 <= n; u += 32)
            tile_step(BF16, R, M, &in, u, acc);
        tile_tail(BF16, R, M, &in, u, n, acc);
    }
    UNROLL
    for (int i = 0; i < R; i++)
        UNROLL
    for (int j = 0; j < M; j++)
        p->out[(t + (size_t)j) * p->ldo + r + (size_t)i * gap] = v_sum(acc[i][j]);
}
