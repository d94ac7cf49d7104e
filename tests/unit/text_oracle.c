/* SPDX-License-Identifier: Apache-2.0 */
/* Slow, obvious tokenizers. */
#include "text_oracle.h"

#include <criterion/criterion.h>
#include <stdlib.h>

/* One character; code -1 and no class for a byte that is no part of well-formed UTF-8. */
struct ch {
    int32_t code;
    uint32_t at; /* byte offset */
    unsigned cls;
};

static void add(k3_ids *ids, size_t value)
{
    cr_assert_eq(k3_ids_reserve(ids, 1, NULL), 0);
    ids->id[ids->n++] = (uint32_t)value;
}

/* A well-formed character is one whose bytes are what its code point encodes to. */
static size_t put_utf8(uint32_t c, uint8_t *to)
{
    if (c < 0x80) {
        to[0] = (uint8_t)c;
        return 1;
    }
    const unsigned n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (unsigned i = n - 1; i; i--, c >>= 6)
        to[i] = (uint8_t)(0x80 | (c & 63));
    to[0] = (uint8_t)(0xF00 >> n | c);
    return n;
}

static int32_t code_at(const uint8_t *s, size_t left, size_t *size)
{
    for (*size = 1; *size <= 4 && *size <= left; ++*size) {
        uint32_t c = *size == 1 ? s[0] : s[0] & (0x7Fu >> *size);
        uint8_t back[4];
        for (size_t i = 1; i < *size; i++)
            c = c << 6 | (s[i] & 63);
        if (c < 0x110000 && (c < 0xD800 || c > 0xDFFF) && put_utf8(c, back) == *size && !memcmp(back, s, *size))
            return (int32_t)c;
    }
    *size = 1;
    return -1;
}

static struct ch *characters(const uint8_t *s, size_t n, size_t *count)
{
    struct ch *t = calloc(n + 1, sizeof *t);
    size_t size;
    *count = 0;
    for (size_t at = 0; at < n; at += size) {
        struct ch *c = &t[(*count)++];
        c->at = (uint32_t)at;
        c->code = code_at(s + at, n - at, &size);
        c->cls = c->code < 0 ? 0 : k3_class_of[k3_class_block[c->code >> 7]][c->code & 127];
    }
    t[*count].at = (uint32_t)n;
    return t;
}

static bool python_space(int32_t c)
{
    static const int32_t ranges[][2] = {{9, 13}, {28, 32}, {0x85, 0x85}, {0xA0, 0xA0}, {0x1680, 0x1680}, {0x2000, 0x200A},
                                        {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

void oracle_cut(const uint8_t *s, size_t n, k3_ids *ends)
{
    size_t count;
    struct ch *t = characters(s, n, &count);
    for (size_t slice = 0; slice < count; slice += 400000) {
        const size_t stop = slice + 400000 < count ? slice + 400000 : count;
        size_t run = 0;
        bool kind = python_space(t[slice].code);
        for (size_t i = slice; i < stop; i++) {
            const bool now = python_space(t[i].code);
            run = now == kind ? run + 1 : 1;
            kind = now;
            if (run > 25000) {
                add(ends, t[i].at);
                run = 1;
            }
        }
        add(ends, t[stop].at);
    }
    free(t);
}

/* ---- the pattern ---- */

enum { LOOK_AHEAD = 1, CONTRACTION, BLANK };
struct atom {
    unsigned set; /* classes; 0 ends the alternative */
    unsigned min, max;
    int kind;
};
#define MANY 1000000
static const struct atom alternatives[8][6] = {
    {{CLASS_HAN, 1, MANY, 0}},
    {{CLASS_LEAD, 0, 1, 0}, {CLASS_UP, 0, MANY, 0}, {CLASS_LO, 1, MANY, 0}, {1, 0, 1, CONTRACTION}},
    {{CLASS_LEAD, 0, 1, 0}, {CLASS_UP, 1, MANY, 0}, {CLASS_LO, 0, MANY, 0}, {1, 0, 1, CONTRACTION}},
    {{CLASS_NUMBER, 1, 3, 0}},
    {{1, 0, 1, BLANK}, {CLASS_OTHER, 1, MANY, 0}, {CLASS_NEWLINE, 0, MANY, 0}},
    {{CLASS_SPACE, 0, MANY, 0}, {CLASS_NEWLINE, 1, MANY, 0}},
    {{CLASS_SPACE, 1, MANY, 0}, {1, 1, 1, LOOK_AHEAD}},
    {{CLASS_SPACE, 1, MANY, 0}},
};

/* Characters of the contraction at t[i], or 0. */
static size_t contraction_at(const struct ch *t, size_t n, size_t i)
{
    static const char *const forms[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t f = 0; f < 7; f++) {
        size_t k = 0;
        for (; forms[f][k] && i + k < n; k++) {
            const int32_t c = t[i + k].code, want = forms[f][k];
            const int32_t lower = c >= 'A' && c <= 'Z' ? c + 32 : c == 0x17F ? 's' : c == 0x212A ? 'k' : c;
            if (lower != want)
                break;
        }
        if (!forms[f][k])
            return k;
    }
    return 0;
}

#define FAILED SIZE_MAX
/* End of the match of the atoms at t[i], greedy with backtracking, or FAILED. */
static size_t match(const struct atom *a, const struct ch *t, size_t n, size_t i)
{
    size_t taken = 0, end;
    if (!a->set)
        return i;
    if (a->kind == LOOK_AHEAD)
        return i == n || (t[i].cls & CLASS_SPACE) ? match(a + 1, t, n, i) : FAILED;
    if (a->kind == CONTRACTION) {
        taken = contraction_at(t, n, i);
        return match(a + 1, t, n, i + taken);
    }
    while (taken < a->max && i + taken < n && (a->kind == BLANK ? t[i + taken].code == ' ' : (t[i + taken].cls & a->set) != 0))
        taken++;
    for (;; taken--) {
        if (taken < a->min)
            return FAILED;
        if ((end = match(a + 1, t, n, i + taken)) != FAILED)
            return end;
        if (!taken)
            return FAILED;
    }
}

void oracle_split(const uint8_t *s, size_t n, k3_ids *ends)
{
    size_t count, end;
    struct ch *t = characters(s, n, &count);
    for (size_t i = 0; i < count; i = end) {
        end = FAILED;
        for (int a = 0; a < 8 && end == FAILED; a++)
            end = match(alternatives[a], t, count, i);
        cr_assert((end == FAILED) == (t[i].code < 0), "U+%04X matches no alternative", (unsigned)t[i].code);
        if (end == FAILED)
            end = i + 1;
        add(ends, t[end].at);
    }
    free(t);
}

/* ---- merging ---- */

static uint32_t rank_of(const k3_vocab *v, const uint8_t *s, size_t n)
{
    for (uint32_t id = 0; id < k3_vocab_ranks(v); id++) {
        size_t size;
        const char *token = k3_vocab_bytes(v, id, &size);
        if (size == n && !memcmp(token, s, n))
            return id;
    }
    return NO_ID;
}

void oracle_merge(const k3_vocab *v, const uint8_t *s, size_t n, k3_ids *out)
{
    size_t *start = malloc((n + 1) * sizeof *start), parts = n;
    uint32_t *rank = malloc((n + 1) * sizeof *rank); /* of parts i and i + 1 together */
    const uint32_t whole = rank_of(v, s, n);
    for (size_t i = 0; i <= n; i++)
        start[i] = i;
    if (whole != NO_ID)
        start[parts = 1] = n;
    for (size_t i = 0; i + 1 < parts; i++)
        rank[i] = rank_of(v, s + start[i], start[i + 2] - start[i]);
    while (parts > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < parts; i++)
            if (rank[i] < rank[best])
                best = i;
        if (rank[best] == NO_ID)
            break;
        memmove(start + best + 1, start + best + 2, (parts - best - 1) * sizeof *start);
        memmove(rank + best, rank + best + 1, (parts - best - 1) * sizeof *rank);
        parts--;
        for (size_t i = best ? best - 1 : 0; i <= best && i + 1 < parts; i++)
            rank[i] = rank_of(v, s + start[i], start[i + 2] - start[i]);
    }
    for (size_t i = 0; i < parts; i++)
        add(out, rank_of(v, s + start[i], start[i + 1] - start[i]));
    free(start);
    free(rank);
}

void oracle_encode(const k3_vocab *v, const uint8_t *s, size_t n, k3_ids *out)
{
    k3_ids cuts = {0}, ends = {0};
    size_t begin = 0;
    oracle_cut(s, n, &cuts);
    for (size_t c = 0; c < cuts.n; begin = cuts.id[c++]) {
        size_t from = begin;
        ends.n = 0;
        oracle_split(s + begin, cuts.id[c] - begin, &ends);
        for (size_t i = 0; i < ends.n; from = begin + ends.id[i++])
            oracle_merge(v, s + from, begin + ends.id[i] - from, out);
    }
    k3_ids_free(&cuts);
    k3_ids_free(&ends);
}

/* ---- texts ---- */

char *random_text(uint64_t seed, size_t n, bool bad_bytes, size_t *size)
{
    /* one of each class and of each way classes overlap, and what contractions are made of */
    static const int32_t chars[] = {'a', 'b', 'e', 'l', 's', 't', 'd', 'A', 'L', 'S', 'D', 'R', 'E', '\'', '\'', ' ', ' ', ' ',
                                    '\t', '\n', '\r', '0', '9', '!', '/', '_', 0x1C, 0x0B, 0x85, 0xA0, 0x2028, 0x3000, 0xAA, 0x2B0,
                                    0x1C5, 0x301, 0x20DD, 0xDF, 0xC9, 0x17F, 0x212A, 0x4E16, 0x754C, 0x3007, 0x3005, 0x2E80, 0x16FF0,
                                    0x3042, 0x661, 0xBD, 0x200D, 0x1F600, 0x10FFFF, 0xE000, 0x378, 0x1E08F, 0x105C0, 0x10D40, 0};
    const uint32_t kinds = sizeof chars / sizeof *chars;
    uint8_t *s = malloc(n + 8);
    uint64_t r = seed * 0x9E3779B97F4A7C15u + 1;
    uint32_t some[6]; /* a text draws most of its characters from these, so that runs appear */
    for (unsigned i = 0; i < 6; i++)
        some[i] = rnd(&r, kinds);
    *size = 0;
    while (*size < n) {
        if (bad_bytes && rnd(&r, 8) == 0)
            s[(*size)++] = (uint8_t)(0x80 + rnd(&r, 128));
        else
            *size += put_utf8((uint32_t)chars[rnd(&r, 4) ? some[rnd(&r, 6)] : rnd(&r, kinds)], s + *size);
    }
    return (char *)s;
}
