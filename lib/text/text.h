/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - shared by the files of lib/text. */
#ifndef K3_TEXT_PRIVATE_H
#define K3_TEXT_PRIVATE_H

#include "k3_text.h"

#include <string.h>

#define NO_ID UINT32_MAX
#define SLACK 16 /* readable bytes after every text that is hashed */

/* ---- character classes (unicode16.c, generated) ---- */

enum {
    CLASS_HAN = 1,      /* script Han */
    CLASS_UP = 2,       /* Lu Lt Lm Lo M, not Han */
    CLASS_LO = 4,       /* Ll Lm Lo M, not Han */
    CLASS_NUMBER = 8,   /* N */
    CLASS_OTHER = 16,   /* not White_Space, L, N */
    CLASS_SPACE = 32,   /* White_Space */
    CLASS_LEAD = 64,    /* not CR, LF, L, N: may lead a word */
    CLASS_NEWLINE = 128 /* CR, LF */
};
extern const uint16_t k3_class_block[8704];
extern const uint8_t k3_class_of[][128];

/* Bytes of the well-formed UTF-8 sequence at p (1 for ASCII), 0 if there is
 * none; *incomplete tells that more bytes after `end` could complete it. */
unsigned k3_utf8_length(const uint8_t *p, const uint8_t *end, bool *incomplete);

/* End of the first piece of the text at p. p < end, and *end must be a byte
 * that is no part of UTF-8 (0xFF) with SLACK readable bytes. */
const uint8_t *k3_split_next(const uint8_t *p, const uint8_t *end);

/* ---- chunks: the lengths of text that the pre-split gets (chunks.c) ---- */

/* Where the text is in its slice of 400,000 characters and in a run of
 * characters that are all white space, or all not, in the sense of Python's isspace(). */
struct chunk_count {
    uint32_t chars, run;
    bool run_is_space;
};

/* Bytes from p to the end of its chunk (*ended), or to the end of the text at hand; a
 * sequence that is incomplete there is left alone unless the text is `final`. */
size_t k3_chunk_next(struct chunk_count *c, const uint8_t *p, const uint8_t *end, bool final, bool *ended);

/* True if the text is nothing but white space in that sense. */
bool k3_all_space(const char *s, size_t n);

/* ---- vocabulary ---- */

struct k3_vocab {
    uint32_t ranks;
    uint32_t longest;  /* bytes of the longest token */
    uint32_t *offset;  /* [ranks + K3_SPECIALS + 1] into bytes */
    char *bytes;       /* all tokens, then all special names, then SLACK */
    bool named[K3_SPECIALS];

    /* K3_VOCAB_ENCODE only */
    uint32_t byte_id[256];
    uint32_t *pair;    /* [65536] id of the token of two bytes, first byte high, or NO_ID */
    uint64_t *slot;    /* [1 << slot_bits] open addressing: low half of the hash << 32 | id + 1; 0 is free */
    unsigned slot_bits;
    uint16_t by_length[K3_SPECIALS]; /* specials, longest name first */
    uint8_t *special_start;          /* [8192] bit set of the first two bytes of the names */
};

/* The two files of a vocabulary, from the folder or (`path` is for messages) from memory. */
int k3_vocab_read_ranks(k3_vocab *v, const char *dir, k3_err *err);
int k3_vocab_read_specials(k3_vocab *v, const char *dir, k3_err *err);
int k3_vocab_parse_ranks(k3_vocab *v, const char *path, const char *data, size_t size, k3_err *err);
int k3_vocab_parse_specials(k3_vocab *v, const char *path, const char *data, size_t size, k3_err *err);
int k3_vocab_index(k3_vocab *v, const char *dir, k3_err *err);
void k3_vocab_index_specials(k3_vocab *v);
/* `dir`/`name`, malloc'ed. */
int k3_text_path(char **path, const char *dir, const char *name, k3_err *err);
/* The file whole; a missing one is named with its folder, a git-lfs pointer or a web page as such. */
int k3_text_read(const char *dir, const char *name, char **path, char **data, size_t *size, k3_err *err);
/* The first special name in [p, end): its place, its id in *id; NULL if none. */
const uint8_t *k3_special_find(const k3_vocab *v, const uint8_t *p, const uint8_t *end, uint32_t *id);

/* ---- hashing and lookup ---- */

/* Up to 15 bytes as two words, the length in the top byte. 16 bytes at s must be readable. */
static inline void short_key(const void *s, size_t n, uint64_t *lo, uint64_t *hi)
{
    static const uint8_t keep[32] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255};
    uint64_t a, b, ma, mb;
    memcpy(&a, s, 8);
    memcpy(&b, (const char *)s + 8, 8);
    memcpy(&ma, keep + 16 - n, 8);
    memcpy(&mb, keep + 24 - n, 8);
    *lo = a & ma;
    *hi = (b & mb) | (uint64_t)n << 56;
}

static inline uint64_t short_hash(uint64_t lo, uint64_t hi)
{
    unsigned __int128 m = (unsigned __int128)(lo ^ 0x9E3779B97F4A7C15u) * (hi ^ 0xD6E8FEB86659FD93u);
    return (uint64_t)m ^ (uint64_t)(m >> 64);
}

uint64_t k3_token_hash(const void *s, size_t n);
/* The id of the token s[0..n) whose hash is given, or NO_ID. */
uint32_t k3_token_find(const k3_vocab *v, const void *s, size_t n, uint64_t hash);

/* ---- merging ---- */

typedef struct k3_merger k3_merger;
int k3_merger_new(k3_merger **m, const k3_vocab *v, k3_err *err);
void k3_merger_free(k3_merger *m);
/* Ids of a piece that is no token itself, n >= 2, into out[n]. Returns their
 * number, or 0 if memory ran out. */
size_t k3_merge(k3_merger *m, const uint8_t *s, size_t n, uint32_t *out);

#endif
