/* SPDX-License-Identifier: Apache-2.0 */
/* k3_compact.h - bf16 without its redundancy: about 11.2 bits a weight, every bit kept.
 *
 * Weights of trained models use few exponents. A matrix of bf16 [rows][cols]
 * (sign 1 bit, exponent 8, mantissa 7) becomes, all numbers little-endian:
 *
 *   0   u32       rows
 *   4   u32       cols
 *   8   u32       n, the number of escapes
 *   12  u8 [7]    the seven exponents of code 0 .. 6; unused ones are 0
 *   19  u8        0
 *   20  u32 [rows] for each row, the number of escapes in the rows before it
 *   zeros up to the next multiple of 64: `blocks`
 *   blocks        [rows][(cols + 63) / 64] of 88 bytes, 64 columns each
 *   then u8 [n]   the escapes' exponents, by row, then by column
 *   then 64 zeros
 *
 * A block, for its weights i = 0 .. 63:
 *   0   u8 [64]   byte i: mantissa << 1 | sign
 *   64  u8 [16]   byte i % 16, bits 2 (i / 16) and up: the lower two bits of weight i's code
 *   80  u8 [8]    byte i % 8, bit i / 8: the third bit of its code
 * A code of 0 .. 6 names the exponent in the table; 7 is an escape, whose
 * exponent is the next of the list. Columns past the last are 0 with code 0.
 *
 * The numbers at hand say all of the size: k3_compact_size(). What is inside
 * cannot make a reader leave these bytes: damaged ones give other weights.
 */
#ifndef K3_COMPACT_H
#define K3_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { K3_COMPACT_BLOCK = 64, K3_COMPACT_BLOCK_BYTES = 88, K3_COMPACT_CODES = 7 };

/* Bytes of the compact form of a matrix with so many escapes. rows, cols >= 1; rows * cols < 2^32. */
uint64_t k3_compact_size(uint64_t rows, uint64_t cols, uint64_t escapes);

/* Makes the compact form of in [rows][cols] (bf16, any alignment). Returns its bytes, or 0 if it would not be smaller
 * than the matrix: nothing is written then, and the matrix is to be kept as it is. out has room for 2*rows*cols bytes
 * and need not be aligned. The same matrix always gives the same bytes. */
uint64_t k3_compact_encode(uint8_t *out, const void *in, uint64_t rows, uint64_t cols);

/* A compact matrix in memory that stays the caller's, of any alignment. */
typedef struct k3_compact {
    uint64_t rows, cols, escapes;
    const uint8_t *offset; /* u32 [rows] */
    const uint8_t *block;  /* [rows][row_bytes] */
    const uint8_t *escape; /* [escapes], then 64 bytes that may be read */
    uint64_t row_bytes;
    uint8_t exponent[16];  /* by code; that of 7 is 0 */
} k3_compact;

/* Whether the `bytes` at data are the compact form of a matrix of that shape, by its header and size. After that no
 * content of them makes a kernel read outside of them; whether they are the right ones is for a checksum to say. */
bool k3_compact_open(k3_compact *c, const void *data, uint64_t bytes, uint64_t rows, uint64_t cols);

#endif
