/* SPDX-License-Identifier: Apache-2.0 */
/* Ids back to bytes, held tails, and ids as decimal text. */
#include "text_oracle.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define SMALL "tests/fixtures/tiny/model"

static k3_vocab *vocab;

static void open_small(void)
{
    k3_err err = {0};
    cr_assert_eq(k3_vocab_open(&vocab, SMALL, K3_VOCAB_ENCODE, &err), 0, "%s", err.text);
}

static void close_small(void)
{
    k3_vocab_close(vocab);
}

TestSuite(text_decode, .init = open_small, .fini = close_small);

/* Bytes written after each single byte of `s` has come, as byte tokens. */
static void expect_written(const char *s, const char *after)
{
    k3_decoder d = {.vocab = vocab};
    k3_bytes out = {0};
    size_t bad;
    const size_t n = strlen(s);
    for (size_t i = 0; i < n; i++) {
        cr_assert_eq(k3_decode(&d, &vocab->byte_id[(uint8_t)s[i]], 1, &out, &bad, NULL), 0);
        cr_assert_eq(out.n, (size_t)(after[i] - '0'), "\"%s\": %zu bytes out after %zu in, expected %c", s, out.n, i + 1, after[i]);
        cr_assert(!memcmp(out.data, s, out.n));
    }
    cr_assert_eq(k3_decode_end(&d, &out, NULL), 0);
    cr_assert(out.n == n && !memcmp(out.data, s, n), "\"%s\": not the same at the end", s);
    k3_bytes_free(&out);
}

/* Half an emoji written early; a byte that nothing can complete held for ever. */
Test(text_decode, tail)
{
    expect_written("a\xC3\xA9z", "1134");
    expect_written("\xF0\x9F\x98\x80!", "00045");
    expect_written("\xF0\x9F\x98x", "0004");
    expect_written("\xF0\x9F\xF0\x9F\x98\x80", "002226");
    expect_written("\xE4\xB8", "00");
    expect_written("\x80\xBF", "12");     /* continuation bytes alone */
    expect_written("\xC0\xAF", "12");     /* never a lead byte */
    expect_written("\xE0\x80\x80", "023"); /* overlong */
    expect_written("\xED\xA0\x80", "023"); /* surrogate */
    expect_written("\xF4\x90\x80", "023"); /* beyond U+10FFFF */
    expect_written("\xF5\x80", "12");
}

/* A held tail and a bad id in one call; the id before it is not lost. */
Test(text_decode, bad_id)
{
    k3_decoder d = {.vocab = vocab};
    k3_bytes out = {0};
    k3_err err = {0};
    size_t bad = 99;
    const uint32_t ids[] = {vocab->byte_id['x'], vocab->byte_id[0xC3], k3_vocab_size(vocab), vocab->byte_id['y']};
    cr_assert_eq(k3_decode(&d, ids, 4, &out, &bad, &err), K3_EDATA);
    cr_assert_eq(bad, 2);
    cr_assert_str_eq(err.text, "id 2048 is outside the vocabulary of 2048 ids");
    cr_assert_eq(k3_decode_end(&d, &out, NULL), 0);
    cr_assert(out.n == 2 && !memcmp(out.data, "x\xC3", 2));
    k3_bytes_free(&out);
}

Test(text_decode, specials)
{
    k3_decoder d = {.vocab = vocab, .skip_special = true};
    k3_bytes out = {0};
    size_t bad, size;
    for (uint32_t id = k3_vocab_ranks(vocab); id < k3_vocab_size(vocab); id++) {
        cr_assert_eq(k3_decode(&d, &id, 1, &out, &bad, NULL), 0);
        const char *name = k3_vocab_bytes(vocab, id, &size);
        cr_assert_eq(k3_vocab_special(vocab, name, size), id);
    }
    cr_assert_eq(out.n, 0);
    cr_assert(!memcmp(k3_vocab_bytes(vocab, 1800, &size), "<|reserved_token_1800|>", 23));
    cr_assert_eq(size, 23);
    cr_assert(!k3_vocab_is_named(vocab, 1800) && k3_vocab_is_named(vocab, 1792) && !k3_vocab_is_named(vocab, 1791));
    cr_assert_null(k3_vocab_bytes(vocab, 2048, &size));
    k3_bytes_free(&out);
}

/* Any bytes come back from decode(encode(bytes)), id by id, in both vocabularies' terms of bytes. */
Test(text_decode, round_trip)
{
    k3_encoder *e;
    k3_ids ids = {0};
    k3_bytes out = {0};
    cr_assert_eq(k3_encoder_new(&e, vocab, false, NULL), 0);
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        k3_decoder d = {.vocab = vocab};
        size_t n = seed % 200, bad;
        uint64_t r = seed;
        char *s = seed % 2 ? random_text(seed, n, true, &n) : malloc(n + 1);
        for (size_t i = 0; i < n && seed % 2 == 0; i++)
            s[i] = (char)rnd(&r, 256);
        ids.n = out.n = 0;
        cr_assert_eq(k3_encode(e, s, n, &ids, NULL), 0);
        for (size_t i = 0; i < ids.n; i++)
            cr_assert_eq(k3_decode(&d, ids.id + i, 1, &out, &bad, NULL), 0);
        cr_assert_eq(k3_decode_end(&d, &out, NULL), 0);
        cr_assert(out.n == n && (!n || !memcmp(out.data, s, n)), "seed %llu", (unsigned long long)seed);
        free(s);
    }
    k3_bytes_free(&out);
    k3_ids_free(&ids);
    k3_encoder_free(e);
}

/* Reads `text` in steps of `step` bytes; the events as text: numbers, '/' for a line, then the error. */
static const char *events(const char *text, size_t step)
{
    static char shown[400];
    k3_id_reader r = {.name = "in", .vocab = 2048};
    k3_err err = {0};
    uint32_t id;
    size_t used = 0, n = strlen(text);
    int got = K3_ID_MORE;
    shown[0] = 0;
    for (size_t at = 0; at < n; at += step) {
        const char *p = text + at, *const end = at + step < n ? p + step : text + n;
        while ((got = k3_id_next(&r, &p, end, &id, &err)) != K3_ID_MORE) {
            if (got == K3_EDATA)
                goto failed;
            used += (size_t)(got == K3_ID_VALUE ? sprintf(shown + used, "%u ", id) : sprintf(shown + used, "/"));
        }
    }
    if ((got = k3_id_end(&r, &id, &err)) == K3_ID_VALUE)
        used += (size_t)sprintf(shown + used, "%u ", id);
    if (got != K3_EDATA)
        return shown;
failed:
    snprintf(shown + used, sizeof shown - used, "%s", err.text);
    return shown;
}

Test(text_decode, id_reader)
{
    for (size_t step = 1; step < 12; step++) {
        cr_expect_str_eq(events("", step), "");
        cr_expect_str_eq(events("7", step), "7 ");
        cr_expect_str_eq(events(" 12\t2047 \r\n\n0003 ", step), "12 2047 //3 ");
        cr_expect_str_eq(events("5 6\n7 2048 9", step), "5 6 /7 in: line 2: id 2048 is outside the vocabulary of 2048 ids (id number 4) (at byte 6)");
        cr_expect_str_eq(events("1x 2", step), "in: line 1: \"1x\" is not an id (at byte 0)");
        cr_expect_str_eq(events("4 -1", step), "4 in: line 1: \"-\" is not an id (at byte 2)");
        cr_expect_str_eq(events("[]\n[ 1 , 22,3 ]\r\n[4]", step), "/1 22 3 /4 ");
        cr_expect_str_eq(events("[1, 2048]", step), "1 in: line 1: id 2048 is outside the vocabulary of 2048 ids (id number 2) (at byte 4)");
        cr_expect_str_eq(events("[1 2]", step), "1 in: line 1: \"2\" in an array of ids, where a comma or ] was expected (at byte 3)");
        cr_expect_str_eq(events("[1,,2]", step), "1 in: line 1: \",\" in an array of ids, where an id was expected (at byte 3)");
        cr_expect_str_eq(events("[1,]", step), "1 in: line 1: \"]\" in an array of ids, where an id was expected (at byte 3)");
        cr_expect_str_eq(events("[[1]]", step), "in: line 1: \"[\" in an array of ids, where an id or ] was expected (at byte 1)");
        cr_expect_str_eq(events("[1]\n[2] 3", step), "1 /2 in: line 2: \"3\" in an array of ids, where the end of the line was expected (at byte 8)");
        cr_expect_str_eq(events("1 [2]", step), "1 in: line 1: \"[\" is not an id (at byte 2)");
        cr_expect_str_eq(events("[1,\n2]", step), "1 in: line 1: ends inside an array of ids, where an id was expected (at byte 3)");
        cr_expect_str_eq(events("[1", step), "in: line 1: ends inside an array of ids (at byte 2)");
        cr_expect_str_eq(events("[1.5]", step), "in: line 1: \"1.\" is not an id (at byte 1)");
        cr_expect_str_eq(events("\xEF\xBB\xBF" "1", step), "in: begins with a byte order mark (BOM, EF BB BF); save it as UTF-8 without one (at byte 0)");
        cr_expect_str_eq(events("\xEF\xBB" "1", step), "in: line 1: \"\xEF\xBB" "1\" is not an id (at byte 0)");
        cr_expect_str_eq(events("1 \xEF\xBB\xBF", step), "1 in: line 1: \"\xEF\" is not an id (at byte 2)");
        cr_expect_str_eq(events("4,5", step), "in: line 1: \"4,\" is not an id (at byte 0)");
        cr_expect_str_eq(events("18446744073709551617", step),
                         "in: line 1: id 18446744073709551617 is outside the vocabulary of 2048 ids (id number 1) (at byte 0)");
        cr_expect_str_eq(events("99999999999999999999999999", step), "in: line 1: \"999999999999999999999999\" is not an id (at byte 0)");
    }
}

Test(text_decode, id_format)
{
    char word[16];
    static const uint32_t ids[] = {0, 9, 10, 163839, UINT32_MAX};
    static const char *const want[] = {"0", "9", "10", "163839", "4294967295"};
    for (int i = 0; i < 5; i++) {
        word[k3_id_format(word, ids[i])] = 0;
        cr_expect_str_eq(word, want[i]);
    }
}
