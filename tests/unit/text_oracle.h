/* SPDX-License-Identifier: Apache-2.0 */
/* text_oracle.h - slow, obvious tokenizers that the fast one is compared with. */
#ifndef TEXT_ORACLE_H
#define TEXT_ORACLE_H

#include "text.h"

/* Pseudo-random numbers; *state is the seed and must not be 0. */
static inline uint32_t rnd(uint64_t *state, uint32_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 33) % below);
}

/* Ids of the text: cut by counting characters, split by a backtracking
 * matcher of the pattern, merged by searching all pairs. */
void oracle_encode(const k3_vocab *v, const uint8_t *s, size_t n, k3_ids *out);
/* The parts of it. Ends of the pieces of a text, as byte offsets appended to *ends; ids of one piece appended to *out. */
void oracle_cut(const uint8_t *s, size_t n, k3_ids *ends);
void oracle_split(const uint8_t *s, size_t n, k3_ids *ends);
void oracle_merge(const k3_vocab *v, const uint8_t *s, size_t n, k3_ids *out);

/* A text of about n bytes for the seed, rich in what the pattern and the cuts look at; malloc'ed. */
char *random_text(uint64_t seed, size_t n, bool bad_bytes, size_t *size);

#endif
