/* Products with row-major matrices: dot products of rows and tokens in register tiles. */

typedef struct {
    const uint8_t *w;     /* row 0 */
    const uint8_t *scale; /* MXFP4: scale bytes of row 0 */
    size_t rows, n;
} matrix;

enum { BF16, F32, MXFP4 };

INLINE size_t row_bytes(int type, size_t n)
{
    return type == BF16 ? 2 * n : type == F32 ? 4 * n : n / 2;
}

/* R rows from row r and M tokens from token t over all of n. */
INLINE void tile(int type, int R, int M, float *out, size_t ldo, const matrix *m, size_t r, const float *x, size_t ldx)
{
    v16 acc[TILE_R][TILE_T];
    const uint8_t *w[TILE_R], *s[TILE_R];
    const size_t step = type == MXFP4 ? 32 : 16, n = m->n;
    UNROLL for (int i = 0; i < R; i++) {
        w[i] = m->w + (r + (size_t)i) * row_bytes(type, n);
        s[i] = type == MXFP4 ? m->scale + (r + (size_t)i) * (n / 32) : NULL;
        UNROLL for (int j = 0; j < M; j++) acc[i][j] = v_zero();
    }
    size_t k = 0;
    for (; k + step <= n; k += step) {
        v16 a[TILE_R], b[TILE_R];
        UNROLL for (int i = 0; i < R; i++)
        {
            if (type == MXFP4)
                v_mxfp4(w[i] + k / 2, s[i][k / 32], &a[i], &b[i]);
            else
                a[i] = type == BF16 ? v_load_bf16((const uint16_t *)w[i] + k) : v_load((const float *)w[i] + k);
        }
        UNROLL for (int j = 0; j < M; j++)
        {
            v16 xv = v_load(x + (size_t)j * ldx + k);
            UNROLL for (int i = 0; i < R; i++) acc[i][j] = v_fma(a[i], xv, acc[i][j]);
        }
        if (type != MXFP4)
            continue;
        UNROLL for (int j = 0; j < M; j++)
        {
            v16 xv = v_load(x + (size_t)j * ldx + k + 16);
            UNROLL for (int i = 0; i < R; i++) acc[i][j] = v_fma(b[i], xv, acc[i][j]);
        }
    }
    if (k < n) {
        UNROLL for (int i = 0; i < R; i++)
        {
            v16 a = type == BF16 ? v_load_bf16_n((const uint16_t *)w[i] + k, n - k)
                                 : v_load_n((const float *)w[i] + k, n - k);
            UNROLL for (int j = 0; j < M; j++) acc[i][j] = v_fma(a, v_load_n(x + (size_t)j * ldx + k, n - k), acc[i][j]);
        }
    }
    UNROLL for (int i = 0; i < R; i++)
    UNROLL for (int j = 0; j < M; j++) out[(size_t)j * ldo + r + (size_t)i] = v_sum(acc[i][j]);
}

/* All rows against M tokens. */
INLINE void rows_by(int type, int M, float *out, size_t ldo, const matrix *m, const float *x, size_t ldx)
{
    size_t r = 0;
    for (; r + TILE_R <= m->rows; r += TILE_R)
        tile(type, TILE_R, M, out, ldo, m, r, x, ldx);
    for (; r < m->rows; r++)
        tile(type, 1, M, out, ldo, m, r, x, ldx);
}

INLINE void mm(int type, float *out, size_t ldo, const matrix *m, const float *x, size_t ldx, size_t T)
{
    size_t t = 0;
    for (; t + TILE_T <= T; t += TILE_T)
        rows_by(type, TILE_T, out + t * ldo, ldo, m, x + t * ldx, ldx);
    for (; t < T; t++)
        rows_by(type, 1, out + t * ldo, ldo, m, x + t * ldx, ldx);
}

static void mm_bf16(float *out, size_t ldo, const uint16_t *w, size_t rows, size_t n, const float *x, size_t ldx,
                    size_t T)
{
    mm(BF16, out, ldo, &(matrix){(const uint8_t *)w, NULL, rows, n}, x, ldx, T);
}

static void mm_f32(float *out, size_t ldo, const float *w, size_t rows, size_t n, const float *x, size_t ldx, size_t T)
{
    mm(F32, out, ldo, &(matrix){(const uint8_t *)w, NULL, rows, n}, x, ldx, T);
}

static void mm_mxfp4(float *out, size_t ldo, const uint8_t *packed, const uint8_t *scale, size_t rows, size_t n,
                     const float *xs, size_t ldx, size_t T)
{
    mm(MXFP4, out, ldo, &(matrix){packed, scale, rows, n}, xs, ldx, T);
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
        float half[32];
        v_mxfp4(packed + g / 2, scale[g / 32], &even, &odd);
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
    mm_f32(&out, 1, a, 1, n, b, n, 1);
    return out;
}
