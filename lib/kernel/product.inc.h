/* The products of the table: few tokens by tiles from memory, more by blocks from cache. */

/* What the caller's scratch holds. */
typedef struct {
    float tables[256][16]; /* MXFP4 */
    gemm_scratch gemm;
} __attribute__((aligned(64))) product_scratch;
_Static_assert(sizeof(product_scratch) <= K3_SCRATCH_BYTES, "the scratch that callers give is too small");

INLINE void mm(int type, float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    product_scratch *scratch = work->scratch;
    if (type == MXFP4)
        for (int s = 0; s < 256; s++)
            v_mxfp4_table((uint8_t)s, scratch->tables[s]);
    product p = {
        .m = {w->data, w->scale, w->rows, w->cols, (const float(*)[16])scratch->tables},
        .x = x->data,
        .ldx = x->ld,
        .T = x->n,
        .out = out,
        .ldo = ldo,
        .reading = work->reading,
    };
    if (!p.reading.distance)
        p.reading.distance = AHEAD;
    if (!few_tokens(type, &p))
        gemm(type, &p, &scratch->gemm);
}

static void mm_bf16(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    mm(BF16, out, ldo, w, x, work);
}

static void mm_f32(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    mm(F32, out, ldo, w, x, work);
}

static void mm_mxfp4(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    mm(MXFP4, out, ldo, w, x, work);
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
