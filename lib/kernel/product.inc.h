/* SPDX-License-Identifier: Apache-2.0 */
/* The products of the table: few tokens by tiles from memory, more by blocks from cache. */

INLINE void rows_tile(int type, int R, int M, const product *p, size_t r, size_t gap, size_t t)
{
    if (type == COMPACT)
        compact_tile(R, M, p, r, gap, t);
    else
        tile(type, R, M, p, r, gap, t);
}

/* All rows against M tokens, R streams of rows at a time. */
INLINE void rows_by(int type, int R, int M, const product *p)
{
    const size_t gap = p->m.rows / (size_t)R;
    for (size_t r = 0; r < gap; r++)
        rows_tile(type, R, M, p, r, gap, 0);
    for (size_t r = gap * (size_t)R; r < p->m.rows; r++)
        for (size_t t = 0; t < (size_t)M; t++)
            rows_tile(type, 1, 1, p, r, 0, t);
}

/* One token: as many streams as are asked for, of the numbers there are. */
INLINE void one_token(int type, const product *p)
{
    const uint32_t streams = p->reading.streams ? p->reading.streams : (uint32_t)few_rows(type == MXFP4, 1);
#define STREAMS(R)                                                                                                   \
    if (R <= STREAMS_MAX && (streams >= R || R == 1)) {                                                              \
        rows_by(type, R <= STREAMS_MAX ? R : 1, 1, p);                                                               \
        return;                                                                                                      \
    }
    STREAMS(8)
    STREAMS(4)
    STREAMS(2)
    STREAMS(1)
#undef STREAMS
}

/* Up to FEW_T tokens; false if there are more. */
INLINE bool few_tokens(int type, const product *p)
{
#define FEW(M)                                                                                                       \
    if (p->T == M && M <= FEW_T) {                                                                                   \
        rows_by(type, few_rows(type == MXFP4, M), M, p);                                                             \
        return true;                                                                                                 \
    }
    if (p->T == 1) {
        one_token(type, p);
        return true;
    }
    FEW(2)
    FEW(3)
    FEW(4)
    FEW(5)
    FEW(6)
#undef FEW
    return false;
}

/* What the caller's scratch holds. */
typedef struct {
    float tables[256][16]; /* MXFP4 */
    compact_rows rows;
    gemm_scratch gemm;
} __attribute__((aligned(64))) product_scratch;
_Static_assert(sizeof(product_scratch) <= K3_SCRATCH_BYTES, "the scratch that callers give is too small");

INLINE void mm(int type, float *out, size_t ldo, const matrix *m, const k3_vectors *x, const k3_work *work)
{
    product_scratch *scratch = work->scratch;
    product p = {
        .m = *m,
        .x = x->data,
        .ldx = x->ld,
        .T = x->n,
        .out = out,
        .ldo = ldo,
        .reading = work->reading,
        .rows = scratch->rows,
    };
    if (!p.reading.distance)
        p.reading.distance = AHEAD;
    if (!few_tokens(type, &p))
        gemm(type, &p, &scratch->gemm);
}

static void mm_bf16(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    mm(BF16, out, ldo, &(matrix){.w = w->data, .rows = w->rows, .n = w->cols}, x, work);
}

static void mm_f32(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    mm(F32, out, ldo, &(matrix){.w = w->data, .rows = w->rows, .n = w->cols}, x, work);
}

static void mm_mxfp4(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    float(*tables)[16] = ((product_scratch *)work->scratch)->tables;
    for (int s = 0; s < 256; s++)
        v_mxfp4_table((uint8_t)s, tables[s]);
    mm(MXFP4, out, ldo, &(matrix){w->data, w->scale, w->rows, w->cols, (const float(*)[16])tables}, x, work);
}

static void mm_compact(float *out, size_t ldo, const k3_compact *w, size_t row, size_t rows, const k3_vectors *x,
                       const k3_work *work)
{
    mm(COMPACT, out, ldo, &(matrix){.compact = w, .row0 = row, .rows = rows, .n = w->cols}, x, work);
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
