/* SPDX-License-Identifier: Apache-2.0 */
/* The compact form of bf16: what the encoder writes, and what a reader refuses. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "k3_kernel.h"

static uint64_t seed;

static double uniform(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53;
}

static uint16_t gaussian(double sigma)
{
    float f = (float)(sigma * sqrt(-2 * log(1 - uniform())) * cos(6.283185307179586 * uniform()));
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)(u >> 16);
}

static uint16_t *matrix(uint64_t rows, uint64_t cols, uint16_t (*value)(double), double arg)
{
    uint16_t *w = malloc(rows * cols * sizeof *w);
    seed = rows * 31 + cols;
    for (uint64_t i = 0; i < rows * cols; i++)
        w[i] = value(arg);
    return w;
}

static uint16_t any(double unused)
{
    (void)unused;
    return (uint16_t)(uniform() * 65536);
}

/* The rows of the decoded form are those that went in, for every table of kernels. */
static void expect_same(const uint8_t *data, uint64_t bytes, const uint16_t *w, uint64_t rows, uint64_t cols)
{
    k3_compact c;
    cr_assert(k3_compact_open(&c, data, bytes, rows, cols));
    uint16_t *out = malloc(rows * cols * sizeof *out);
    const k3_kernels *k;
    for (int i = 0; (k = k3_kernels_available(i)); i++) {
        memset(out, 0xA5, rows * cols * sizeof *out);
        k->compact_decode(out, &c, 0, rows);
        cr_expect(!memcmp(out, w, rows * cols * sizeof *out), "%s, %d x %d", k->name, (int)rows, (int)cols);
    }
    free(out);
}

/* Shapes with whole blocks, cut ones, one row, one column too many. Ratios of wide ones as documented. */
Test(kernel_compact, gaussian)
{
    static const struct {
        uint64_t rows, cols;
        double ratio;
    } shape[] = {{64, 7168, 0.705}, {512, 512, 0.709}, {96, 128, 0.73}, {1, 4096, 0.72}, {7, 577, 0.80}, {33, 200, 0.92}};
    for (size_t i = 0; i < sizeof shape / sizeof *shape; i++) {
        uint64_t rows = shape[i].rows, cols = shape[i].cols;
        uint16_t *w = matrix(rows, cols, gaussian, 0.02);
        uint8_t *data = malloc(2 * rows * cols);
        uint64_t bytes = k3_compact_encode(data, w, rows, cols);
        cr_expect_gt(bytes, 0);
        cr_expect_leq((double)bytes, shape[i].ratio * 2 * (double)(rows * cols), "%d x %d: %f", (int)rows, (int)cols,
                      (double)bytes / (double)(2 * rows * cols));
        expect_same(data, bytes, w, rows, cols);
        free(w);
        free(data);
    }
}

/* What would not shrink is left alone. */
Test(kernel_compact, raw)
{
    uint8_t data[4096];
    memset(data, 0x5A, sizeof data);
    uint16_t *w = matrix(8, 256, any, 0);
    cr_expect_eq(k3_compact_encode(data, w, 8, 256), 0);
    cr_expect_eq(k3_compact_encode(data, w, 1, 1), 0);
    for (size_t i = 0; i < sizeof data; i++)
        cr_assert_eq(data[i], 0x5A);
    free(w);
}

/* All of one exponent; and zeros, infinities and NaNs among others. */
Test(kernel_compact, few_exponents)
{
    enum { ROWS = 5, COLS = 320 };
    static const uint16_t odd[] = {0, 0x8000, 0x7f80, 0xff80, 0x7fc1, 0xffff, 1, 0x3f80};
    uint16_t w[ROWS * COLS];
    uint8_t data[sizeof w];
    for (int kind = 0; kind < 2; kind++) {
        for (size_t i = 0; i < ROWS * COLS; i++)
            w[i] = kind ? odd[i * 7 % 8] : (uint16_t)(0x3f80 | i % 128);
        uint64_t bytes = k3_compact_encode(data, w, ROWS, COLS);
        cr_expect_eq(bytes, k3_compact_size(ROWS, COLS, 0));
        expect_same(data, bytes, w, ROWS, COLS);
    }
}

/* Another shape or size than the header's is refused. */
Test(kernel_compact, refused)
{
    uint16_t *w = matrix(16, 256, gaussian, 1);
    uint8_t data[8192 + 1];
    uint64_t bytes = k3_compact_encode(data, w, 16, 256);
    k3_compact c;
    cr_expect(k3_compact_open(&c, data, bytes, 16, 256));
    cr_expect(!k3_compact_open(&c, data, bytes, 32, 128));
    cr_expect(!k3_compact_open(&c, data, bytes, 16, 255));
    cr_expect(!k3_compact_open(&c, data, bytes - 1, 16, 256));
    cr_expect(!k3_compact_open(&c, data, bytes + 1, 16, 256));
    cr_expect(!k3_compact_open(&c, data, 19, 16, 256));
    data[8] ^= 1; /* the number of escapes */
    cr_expect(!k3_compact_open(&c, data, bytes, 16, 256));
    free(w);
}
