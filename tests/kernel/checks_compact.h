/* SPDX-License-Identifier: Apache-2.0 */
/* checks_compact.h - products with compact matrices, which are made here from the description in k3_compact.h, so that
 * any table of exponents can be had: one that fits, one that fits nothing, one in between. */
#ifndef CHECKS_COMPACT_H
#define CHECKS_COMPACT_H

#include "checks.h"

static void put_u32(uint8_t *p, size_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

/* Seven exponents: those of the first weights, or of none (all escapes), or any. */
static void pick_exponents(test *t, const uint16_t *w, size_t n, uint8_t exponent[7])
{
    const uint32_t kind = next(t) % 4;
    bool used[256] = {false};
    for (size_t i = 0; i < n; i++)
        used[w[i] >> 7 & 255] = true;
    int have = 0;
    memset(exponent, 0, 7);
    for (size_t i = 0; i < n && have < 7 && kind < 2; i++) {
        uint8_t e = (uint8_t)(w[i] >> 7);
        if (!memchr(exponent, e, (size_t)have))
            exponent[have++] = e;
    }
    for (int e = 0; e < 256 && have < 7 && kind == 2; e++)
        if (!used[e])
            exponent[have++] = (uint8_t)e;
    for (int i = 0; kind == 3 && i < 7; i++)
        exponent[i] = (uint8_t)next(t);
}

static int code_of(const uint8_t exponent[7], uint8_t e)
{
    for (int c = 0; c < 7; c++)
        if (exponent[c] == e)
            return c;
    return 7;
}

/* In an array of its own, so that its last byte may be the last of a page. */
static uint8_t *make_compact(test *t, const uint16_t *w, size_t rows, size_t cols, size_t *bytes)
{
    uint8_t exponent[7];
    size_t escapes = 0, blocks = (cols + 63) / 64, head = (20 + 4 * rows + 63) / 64 * 64;
    pick_exponents(t, w, rows * cols, exponent);
    for (size_t i = 0; i < rows * cols; i++)
        escapes += code_of(exponent, (uint8_t)(w[i] >> 7)) == 7;
    *bytes = head + rows * blocks * 88 + escapes + 64;
    uint8_t *p = guard_array(&t->arena, *bytes, 1), *e = p + head + rows * blocks * 88;
    memset(p, 0, *bytes);
    put_u32(p, rows);
    put_u32(p + 4, cols);
    put_u32(p + 8, escapes);
    memcpy(p + 12, exponent, 7);
    escapes = 0;
    for (size_t r = 0; r < rows; r++) {
        put_u32(p + 20 + 4 * r, escapes);
        for (size_t c = 0; c < cols; c++) {
            uint8_t *b = p + head + (r * blocks + c / 64) * 88;
            const unsigned u = w[r * cols + c], i = c % 64;
            const int code = code_of(exponent, (uint8_t)(u >> 7));
            b[i] = (uint8_t)((u & 127) << 1 | u >> 15);
            b[64 + i % 16] |= (uint8_t)((code & 3) << i / 16 * 2);
            b[80 + i % 8] |= (uint8_t)((code >> 2) << i / 8);
            if (code == 7)
                e[escapes++] = (uint8_t)(u >> 7);
        }
    }
    return p;
}

/* A matrix of which the rows at hand are some: its first, its last, all or those between. */
typedef struct {
    k3_compact c;
    uint16_t *w;  /* [c.rows][c.cols], the caller's to free */
    uint8_t *p;
    size_t bytes, row;
} compact_case;

static compact_case compact_matrix(test *t)
{
    const shape s = t->s;
    compact_case m = {.row = t->bench ? 0 : next(t) % 3};
    const size_t rows = m.row + s.rows + (t->bench ? 0 : next(t) % 3);
    m.w = malloc(rows * s.n * sizeof *m.w);
    if (!m.w)
        guard_fail("malloc");
    for (size_t i = 0; i < rows * s.n; i++)
        m.w[i] = t->values == ANY ? (uint16_t)next(t) : (uint16_t)(float_to_bits(value(t)) >> 16);
    m.p = make_compact(t, m.w, rows, s.n, &m.bytes);
    if (!k3_compact_open(&m.c, m.p, m.bytes, rows, s.n)) {
        t->failed = true;
        printf("FAIL %s: refused\n", now);
    }
    return m;
}

static void check_mm_compact(test *t)
{
    compact_case m = compact_matrix(t);
    float *wide = widened(m.w + m.row * t->s.n, t->s.rows * t->s.n);
    if (!t->failed)
        check_mm(t, &(weights){.wide = wide, .compact = &m.c, .row = m.row});
    free(wide);
    free(m.w);
}

static void check_compact_decode(test *t)
{
    compact_case m = compact_matrix(t);
    const size_t n = t->s.rows * t->s.n;
    uint16_t *out = guard_array(&t->arena, n * sizeof *out, sizeof *out);
    if (!t->failed)
        CALL(t, t->K->compact_decode(out, &m.c, m.row, t->s.rows));
    for (size_t i = 0; i < n && !t->failed; i++)
        if (out[i] != m.w[m.row * t->s.n + i]) {
            t->failed = true;
            printf("FAIL %s: out[%zu] is %04x, not %04x\n", now, i, out[i], m.w[m.row * t->s.n + i]);
        }
    free(m.w);
}

/* Anything behind the header: no answer is right, but nothing outside is read or written. */
static void check_damaged_compact(test *t)
{
    compact_case m = compact_matrix(t);
    const size_t damage = next(t) % 3;
    for (size_t i = 12; i < m.bytes; i++)
        if (damage == 0 || next(t) % (damage == 1 ? 2 : 64) == 0)
            m.p[i] = damage == 0 ? 0xFF : (uint8_t)next(t);
    float *x = floats(t, t->s.T * t->s.n), *out = floats(t, t->s.T * t->s.rows);
    if (!t->failed)
        call_mm(t, &(weights){.compact = &m.c, .row = m.row}, out, t->s.rows, &(k3_vectors){x, t->s.T, t->s.n});
    free(m.w);
}

#endif
