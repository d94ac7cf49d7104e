/* SPDX-License-Identifier: Apache-2.0 */
/* The compact form of bf16: making it, and finding one's way in it. Kernels read it: compact.inc.h. */
#include "k3_compact.h"

#include <string.h>

enum { HEADER = 20, ALIGN = 64, PAD = 64, ESCAPE = K3_COMPACT_CODES };

static uint64_t blocks_at(uint64_t rows)
{
    return (HEADER + 4 * rows + ALIGN - 1) / ALIGN * ALIGN;
}

static uint64_t row_bytes(uint64_t cols)
{
    return (cols + K3_COMPACT_BLOCK - 1) / K3_COMPACT_BLOCK * K3_COMPACT_BLOCK_BYTES;
}

uint64_t k3_compact_size(uint64_t rows, uint64_t cols, uint64_t escapes)
{
    return blocks_at(rows) + rows * row_bytes(cols) + escapes + PAD;
}

static void put32(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* bf16 i of a matrix in file order. */
static unsigned weight(const uint8_t *in, uint64_t i)
{
    return (unsigned)in[2 * i] | (unsigned)in[2 * i + 1] << 8;
}

/* Every weight's exponent counted. Neighbours are often equal, so they count in different tables. */
static void count_exponents(const uint8_t *in, uint64_t n, uint64_t count[256])
{
    uint32_t part[4][256] = {{0}};
    uint64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (unsigned k = 0; k < 4; k++)
            part[k][weight(in, i + k) >> 7 & 255]++;
    for (; i < n; i++)
        part[0][weight(in, i) >> 7 & 255]++;
    for (int e = 0; e < 256; e++)
        count[e] = (uint64_t)part[0][e] + part[1][e] + part[2][e] + part[3][e];
}

/* The most frequent exponents, lower ones first where equal, into exponent; every exponent's code into code.
 * Returns how many weights have none. */
static uint64_t choose(const uint64_t count[256], uint8_t exponent[K3_COMPACT_CODES], uint8_t code[256])
{
    uint64_t escapes = 0;
    memset(code, ESCAPE, 256);
    memset(exponent, 0, K3_COMPACT_CODES);
    for (int c = 0; c < K3_COMPACT_CODES; c++) {
        int best = -1;
        for (int e = 0; e < 256; e++)
            if (count[e] && code[e] == ESCAPE && (best < 0 || count[e] > count[best]))
                best = e;
        if (best < 0)
            break;
        exponent[c] = (uint8_t)best;
        code[best] = (uint8_t)c;
    }
    for (int e = 0; e < 256; e++)
        escapes += code[e] == ESCAPE ? count[e] : 0;
    return escapes;
}

/* n <= 64 weights; returns where the next escape goes. */
static uint8_t *encode_block(uint8_t *block, const uint8_t *in, uint64_t n, const uint8_t code[256], uint8_t *escape)
{
    uint8_t codes[K3_COMPACT_BLOCK] = {0};
    memset(block, 0, K3_COMPACT_BLOCK_BYTES);
    for (uint64_t i = 0; i < n; i++) {
        unsigned w = weight(in, i);
        uint8_t e = (uint8_t)(w >> 7);
        block[i] = (uint8_t)(w << 1 | w >> 15);
        codes[i] = code[e];
        *escape = e;
        escape += codes[i] == ESCAPE;
    }
    for (int i = 0; i < 16; i++)
        block[64 + i] = (uint8_t)((codes[i] & 3) | (codes[16 + i] & 3) << 2 | (codes[32 + i] & 3) << 4 | (codes[48 + i] & 3) << 6);
    for (int i = 0; i < K3_COMPACT_BLOCK; i++)
        block[80 + i % 8] |= (uint8_t)((codes[i] >> 2) << i / 8);
    return escape;
}

uint64_t k3_compact_encode(uint8_t *out, const void *in, uint64_t rows, uint64_t cols)
{
    const uint8_t *from = in;
    uint64_t count[256];
    uint8_t exponent[K3_COMPACT_CODES], code[256];
    count_exponents(from, rows * cols, count);
    uint64_t escapes = choose(count, exponent, code), size = k3_compact_size(rows, cols, escapes);
    if (size >= 2 * rows * cols)
        return 0;
    uint8_t *block = out + blocks_at(rows), *first = block + rows * row_bytes(cols), *escape = first;
    memset(out, 0, blocks_at(rows));
    put32(out, rows);
    put32(out + 4, cols);
    put32(out + 8, escapes);
    memcpy(out + 12, exponent, sizeof exponent);
    for (uint64_t r = 0; r < rows; r++) {
        put32(out + HEADER + 4 * r, (uint64_t)(escape - first));
        for (uint64_t c = 0; c < cols; c += K3_COMPACT_BLOCK, block += K3_COMPACT_BLOCK_BYTES)
            escape = encode_block(block, from + 2 * (r * cols + c), cols - c < K3_COMPACT_BLOCK ? cols - c : K3_COMPACT_BLOCK, code, escape);
    }
    memset(escape, 0, PAD);
    return size;
}

bool k3_compact_open(k3_compact *c, const void *data, uint64_t bytes, uint64_t rows, uint64_t cols)
{
    const uint8_t *p = data;
    if (bytes < HEADER || get32(p) != rows || get32(p + 4) != cols || bytes != k3_compact_size(rows, cols, get32(p + 8)))
        return false;
    *c = (k3_compact){.rows = rows, .cols = cols, .escapes = get32(p + 8), .offset = p + HEADER, .row_bytes = row_bytes(cols)};
    c->block = p + blocks_at(rows);
    c->escape = c->block + rows * c->row_bytes;
    memcpy(c->exponent, p + 12, K3_COMPACT_CODES);
    return true;
}
