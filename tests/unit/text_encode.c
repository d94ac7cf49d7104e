/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder against slow, obvious definitions of each of its steps. */
#include "text_oracle.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define SMALL "tests/fixtures/tiny/model"

static k3_vocab *vocab;
static k3_encoder *encoder;

static void open_small(void)
{
    k3_err err = {0};
    cr_assert_eq(k3_vocab_open(&vocab, SMALL, K3_VOCAB_ENCODE, &err), 0, "%s", err.text);
    cr_assert_eq(k3_encoder_new(&encoder, vocab, false, &err), 0, "%s", err.text);
}

static void close_small(void)
{
    k3_encoder_free(encoder);
    k3_vocab_close(vocab);
}

TestSuite(text_encode, .init = open_small, .fini = close_small);

static void expect_same(const k3_ids *got, const k3_ids *want, const char *what, uint64_t seed)
{
    for (size_t i = 0; i < got->n && i < want->n; i++)
        cr_assert_eq(got->id[i], want->id[i], "%s, seed %llu: entry %zu is %u, expected %u", what, (unsigned long long)seed, i,
                     got->id[i], want->id[i]);
    cr_assert_eq(got->n, want->n, "%s, seed %llu: %zu entries, expected %zu", what, (unsigned long long)seed, got->n, want->n);
}

/* A wrong order of alternatives, or backtracking that gives back too much or too little. */
Test(text_encode, split)
{
    k3_ids got = {0}, want = {0};
    for (uint64_t seed = 1; seed <= 20000; seed++) {
        size_t n;
        uint8_t *s = (uint8_t *)random_text(seed, 1 + seed % 40, seed % 3 == 0, &n);
        uint8_t *text = malloc(n + 1 + SLACK);
        memcpy(text, s, n);
        text[n] = 0xFF;
        got.n = want.n = 0;
        oracle_split(text, n, &want);
        for (const uint8_t *p = text; p < text + n;) {
            p = k3_split_next(p, text + n);
            cr_assert_eq(k3_ids_reserve(&got, 1, NULL), 0);
            got.id[got.n++] = (uint32_t)(p - text);
        }
        expect_same(&got, &want, "ends of pieces", seed);
        free(text);
        free(s);
    }
    k3_ids_free(&got);
    k3_ids_free(&want);
}

/* Ties not taken leftmost, stale pairs, the change from the scan to the heap at 64 bytes. */
Test(text_encode, merge)
{
    k3_ids want = {0};
    k3_merger *m;
    uint32_t out[400];
    cr_assert_eq(k3_merger_new(&m, vocab, NULL), 0);
    for (uint64_t seed = 1; seed <= 400; seed++) {
        uint64_t r = seed;
        const size_t n = seed < 300 ? 2 + seed % 80 : 300 + seed % 100;
        const uint32_t letters = 1 + rnd(&r, 26);
        uint8_t s[400 + SLACK];
        for (size_t i = 0; i < n; i++)
            s[i] = seed % 5 ? (uint8_t)('a' + (rnd(&r, letters) * 7 + 4) % 26) : (uint8_t)rnd(&r, 256);
        want.n = 0;
        oracle_merge(vocab, s, n, &want);
        k3_ids got = {.id = out, .n = k3_merge(m, s, n, out)};
        if (want.n > 1)
            expect_same(&got, &want, "ids of a piece", seed);
    }
    k3_merger_free(m);
    k3_ids_free(&want);
}

static void expect_chunks(const uint8_t *s, size_t n, size_t step, const char *what)
{
    k3_ids got = {0}, want = {0};
    struct chunk_count c = {0};
    const uint8_t *p = s;
    for (size_t have = step < n ? step : n;; have = have + step < n ? have + step : n) {
        bool ended;
        while (p += k3_chunk_next(&c, p, s + have, have == n, &ended), ended) {
            cr_assert_eq(k3_ids_reserve(&got, 1, NULL), 0);
            got.id[got.n++] = (uint32_t)(p - s);
        }
        if (have == n)
            break;
    }
    oracle_cut(s, n, &want);
    want.n -= want.n > 0; /* the end of the text */
    expect_same(&got, &want, what, step);
    k3_ids_free(&got);
    k3_ids_free(&want);
}

/* Off by one at 25,000 and 400,000; a run counted across a slice; U+001C; bytes counted for characters. */
Test(text_encode, chunks)
{
    static const char *const units[] = {"a", " ", "\n", "\x1C", "\xC3\xA9", "\xE3\x80\x80", "\xE4\xB8\x96", "\xF0\x9F\x98\x80", "\xFF", "a\x1C", "\xE2\x80\xA8"};
    static const size_t counts[] = {24999, 25000, 25001, 50000, 50001, 399999, 400000, 400001, 424999, 425001, 800001};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++)
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++)
            for (size_t lead = 0; lead < 20; lead += 19) {
                const size_t unit = strlen(units[u]), n = lead + counts[k] * unit;
                uint8_t *s = malloc(n + 1);
                memset(s, lead % 2 ? '-' : ' ', lead);
                for (size_t i = 0; i < counts[k]; i++)
                    memcpy(s + lead + i * unit, units[u], unit);
                expect_chunks(s, n, k % 2 ? n + 1 : 65536, units[u]);
                free(s);
            }
}

/* Runs that end and begin inside blocks of 16 bytes, near the limits. */
Test(text_encode, chunks_random)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t r = seed;
        size_t n = 0;
        uint8_t *s = malloc(900000);
        while (n < 450000) {
            const size_t run = rnd(&r, 6) ? rnd(&r, 40) : 24980 + rnd(&r, 60);
            const bool wide = rnd(&r, 8) == 0;
            const uint8_t c = rnd(&r, 2) ? ' ' : 'x';
            for (size_t i = 0; i < run; i++) {
                s[n++] = wide && c == 'x' ? 0xC3 : c;
                if (wide && c == 'x')
                    s[n++] = 0xA9;
            }
        }
        expect_chunks(s, n, seed % 2 ? n + 1 : 1000, "random runs");
        free(s);
    }
}

/* All steps together, fed in steps: a step that ends inside a character, the cache, bytes left over from the text before. */
Test(text_encode, whole)
{
    k3_ids got = {0}, want = {0};
    for (uint64_t seed = 1; seed <= 300; seed++) {
        size_t n;
        char *s = random_text(seed, seed % 90, seed % 2, &n);
        const size_t step = 1 + seed % 7;
        got.n = want.n = 0;
        oracle_encode(vocab, (const uint8_t *)s, n, &want);
        for (size_t at = 0; at < n; at += step)
            cr_assert_eq(k3_encoder_feed(encoder, s + at, at + step < n ? step : n - at, &got, NULL), 0);
        cr_assert_eq(k3_encoder_end(encoder, &got, NULL), 0);
        expect_same(&got, &want, "ids", seed);
        free(s);
    }
    k3_ids_free(&got);
    k3_ids_free(&want);
}

/* A word and an emoji across the cut after 400,000 characters. */
Test(text_encode, across_a_slice)
{
    static const char *const ends[] = {"ship", "\xF0\x9F\x98\x80", "   x", "\xE2\x82"};
    for (size_t k = 0; k < 4; k++) {
        k3_ids got = {0}, left = {0}, right = {0};
        const size_t n = 399998, tail = strlen(ends[k]);
        char *s = malloc(n + 8);
        for (size_t i = 0; i < n; i++)
            s[i] = i % 8 ? 'a' : ' ';
        memcpy(s + n, ends[k], tail);
        memcpy(s + n + tail, "ment", 4);
        k3_ids cuts = {0};
        oracle_cut((const uint8_t *)s, n + tail + 4, &cuts);
        cr_assert_eq(cuts.n, 2);
        cr_assert_eq(k3_encode(encoder, s, n + tail + 4, &got, NULL), 0);
        cr_assert_eq(k3_encode(encoder, s, cuts.id[0], &left, NULL), 0);
        cr_assert_eq(k3_encode(encoder, s + cuts.id[0], n + tail + 4 - cuts.id[0], &right, NULL), 0);
        cr_assert_eq(got.n, left.n + right.n);
        cr_assert(!memcmp(got.id + left.n, right.id, right.n * sizeof *right.id));
        free(s);
        k3_ids_free(&cuts);
        k3_ids_free(&got);
        k3_ids_free(&left);
        k3_ids_free(&right);
    }
}

/* One character a million times: quadratic time, recursion and unbounded memory all show. The run of
 * 1.6 MB that no cut interrupts is U+001C between others. */
Test(text_encode, monotonous, .timeout = 60)
{
    static const char *const units[] = {"a", " ", "^", "_", "\n", "!\x1C", "\xF0\x9F\x98\x80"};
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        k3_ids ids = {0};
        k3_bytes text = {0}, back = {0};
        k3_decoder d = {.vocab = vocab};
        size_t bad;
        while (text.n < 1000000)
            cr_assert_eq(k3_bytes_add(&text, units[u], strlen(units[u]), NULL), 0);
        cr_assert_eq(k3_encode(encoder, text.data, text.n, &ids, NULL), 0);
        cr_assert_eq(k3_decode(&d, ids.id, ids.n, &back, &bad, NULL), 0);
        cr_assert(back.n == text.n && !memcmp(back.data, text.data, text.n));
        k3_ids_free(&ids);
        k3_bytes_free(&text);
        k3_bytes_free(&back);
    }
}

struct collected {
    k3_ids ids;
    k3_bytes text;
    size_t pieces;
};

static void collect(void *arg, const char *piece, size_t size, const uint32_t *ids, size_t n)
{
    struct collected *c = arg;
    cr_assert_eq(k3_ids_reserve(&c->ids, n, NULL), 0);
    memcpy(c->ids.id + c->ids.n, ids, n * sizeof *ids);
    c->ids.n += n;
    cr_assert_eq(k3_bytes_add(&c->text, piece, size, NULL), 0);
    c->pieces++;
}

/* The pieces seen are the text, and their ids are the text's ids. */
Test(text_encode, pieces)
{
    static const char text[] = "Call me Ishmael. [EOS]x<|open|>";
    struct collected c = {0};
    k3_encoder *e;
    k3_ids ids = {0};
    cr_assert_eq(k3_encoder_new(&e, vocab, true, NULL), 0);
    k3_encoder_on_piece(e, collect, &c);
    cr_assert_eq(k3_encode(e, text, strlen(text), &ids, NULL), 0);
    expect_same(&c.ids, &ids, "ids of pieces", 0);
    cr_assert(c.text.n == strlen(text) && !memcmp(c.text.data, text, c.text.n));
    cr_assert_eq(c.pieces, 8); /* Call, me, Ishmael, ., blank, [EOS], x, <|open|> */
    k3_ids_free(&c.ids);
    k3_bytes_free(&c.text);
    k3_ids_free(&ids);
    k3_encoder_free(e);
}

/* Every special, alone and between words; names cut short stay text. */
Test(text_encode, specials)
{
    k3_encoder *e;
    k3_ids ids = {0}, left = {0};
    cr_assert_eq(k3_encoder_new(&e, vocab, true, NULL), 0);
    for (uint32_t id = k3_vocab_ranks(vocab); id < k3_vocab_size(vocab); id++) {
        char text[128];
        size_t size;
        const char *name = k3_vocab_bytes(vocab, id, &size);
        const int n = snprintf(text, sizeof text, "  %.*s sea%.*s", (int)size, name, (int)size - 1, name);
        ids.n = left.n = 0;
        cr_assert_eq(k3_encode(e, text, (size_t)n, &ids, NULL), 0);
        cr_assert_eq(k3_encode(encoder, "  ", 2, &left, NULL), 0);
        cr_assert_eq(ids.id[left.n], id, "special %u is not recognised", id);
        left.n = 0;
        cr_assert_eq(k3_encode(encoder, text, (size_t)n, &left, NULL), 0);
        for (size_t i = 0; i < left.n; i++)
            cr_assert_lt(left.id[i], k3_vocab_ranks(vocab), "plain text gave special %u", left.id[i]);
        for (size_t i = 3; i < ids.n; i++)
            cr_assert_lt(ids.id[i], k3_vocab_ranks(vocab), "a name cut short gave special %u", ids.id[i]);
    }
    k3_ids_free(&ids);
    k3_ids_free(&left);
    k3_encoder_free(e);
}

/* A name read past the end of the text, out of the text before, or through a cut. */
Test(text_encode, specials_at_ends)
{
    k3_encoder *e;
    k3_ids ids = {0};
    const uint32_t eos = 1793;
    cr_assert_eq(k3_encoder_new(&e, vocab, true, NULL), 0);
    cr_assert_eq(k3_encode(e, "x[EOS]", 6, &ids, NULL), 0);
    cr_assert_eq(ids.id[ids.n - 1], eos);
    ids.n = 0;
    cr_assert_eq(k3_encode(e, "x[EO", 4, &ids, NULL), 0);
    for (size_t i = 0; i < ids.n; i++)
        cr_assert_neq(ids.id[i], eos, "a name cut short by the end of the text");
    for (size_t before = 399994; before <= 400000; before++) {
        char *s = malloc(before + 5);
        size_t found = 0;
        for (size_t i = 0; i < before; i++)
            s[i] = i % 8 ? 'a' : ' ';
        memcpy(s + before, "[EOS]", 5);
        ids.n = 0;
        cr_assert_eq(k3_encode(e, s, before + 5, &ids, NULL), 0);
        for (size_t i = 0; i < ids.n; i++)
            found += ids.id[i] == eos;
        cr_assert_eq(found, before <= 399995 || before == 400000, "%zu characters before the name", before);
        free(s);
    }
    k3_ids_free(&ids);
    k3_encoder_free(e);
}

/* Of two names at one place the longer is meant, whichever id it has. */
Test(text_encode, longest_special)
{
    static const char config[] = "{\"added_tokens_decoder\": {\"1792\": {\"content\": \"<a>\"}, \"1793\": {\"content\": \"<a>b\"},"
                                 " \"1794\": {\"content\": \"<\"}}}";
    char *ranks;
    size_t size;
    k3_err err = {0};
    k3_encoder *e;
    k3_ids ids = {0};
    k3_vocab *v = calloc(1, sizeof *v);
    cr_assert_eq(k3_read_file(SMALL "/tiktoken.model", 1 << 20, &ranks, &size, &err), 0);
    cr_assert_eq(k3_vocab_parse_ranks(v, "ranks", ranks, size, &err), 0, "%s", err.text);
    cr_assert_eq(k3_vocab_parse_specials(v, "config", config, sizeof config - 1, &err), 0, "%s", err.text);
    cr_assert_eq(k3_vocab_index(v, ".", &err), 0, "%s", err.text);
    cr_assert_eq(k3_encoder_new(&e, v, true, NULL), 0);
    cr_assert_eq(k3_encode(e, "<a>b<a><", 8, &ids, NULL), 0);
    cr_assert(ids.n == 3 && ids.id[0] == 1793 && ids.id[1] == 1792 && ids.id[2] == 1794);
    k3_ids_free(&ids);
    k3_encoder_free(e);
    k3_vocab_close(v);
    free(ranks);
}
