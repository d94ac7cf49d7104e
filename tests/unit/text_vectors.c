/* SPDX-License-Identifier: Apache-2.0 */
/* Published ids of the small and of the real vocabulary, text by text. */
#include "k3_text.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define SMALL "tests/fixtures/tiny/model"

static size_t unbase64(const char *s, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = 0;
    uint32_t bits = 0, have = 0;
    for (; *s && *s != '='; s++) {
        bits = bits << 6 | (uint32_t)(strchr(digits, *s) - digits);
        have += 6;
        if (have >= 8)
            out[n++] = (char)(bits >> (have -= 8));
    }
    return n;
}

static void expect_ids(const char *name, const k3_ids *got, const json_t *want)
{
    cr_assert_eq(got->n, json_array_size(want), "%s: %zu ids, expected %zu", name, got->n, json_array_size(want));
    for (size_t i = 0; i < got->n; i++) {
        const json_int_t w = json_integer_value(json_array_get(want, i));
        cr_assert_eq(got->id[i], w, "%s: id %zu is %u, expected %lld", name, i, got->id[i], (long long)w);
    }
}

/* Ids of the text fed in parts of `part` bytes. */
static void encode_in_parts(k3_encoder *e, const char *text, size_t n, size_t part, k3_ids *out)
{
    k3_err err = {0};
    out->n = 0;
    for (size_t at = 0; at < n; at += part)
        cr_assert_eq(k3_encoder_feed(e, text + at, at + part < n ? part : n - at, out, &err), 0, "%s", err.text);
    cr_assert_eq(k3_encoder_end(e, out, &err), 0, "%s", err.text);
}

static void expect_text(const k3_vocab *v, const char *name, const k3_ids *ids, const char *text, size_t n)
{
    k3_decoder d = {.vocab = v};
    k3_bytes out = {0};
    size_t bad;
    for (size_t i = 0; i < ids->n; i++)
        cr_assert_eq(k3_decode(&d, ids->id + i, 1, &out, &bad, NULL), 0);
    cr_assert_eq(k3_decode_end(&d, &out, NULL), 0);
    cr_assert(out.n == n && (!n || !memcmp(out.data, text, n)), "%s: the ids decode to another text", name);
    k3_bytes_free(&out);
}

static void check_lines(const char *dir, const char *path)
{
    k3_vocab *v;
    k3_encoder *e;
    k3_err err = {0};
    k3_ids ids = {0};
    char *line = NULL;
    size_t cap = 0, lines = 0;
    ssize_t len;
    cr_assert_eq(k3_vocab_open(&v, dir, K3_VOCAB_ENCODE, &err), 0, "%s", err.text);
    cr_assert_eq(k3_encoder_new(&e, v, false, &err), 0, "%s", err.text);
    FILE *f = fopen(path, "r");
    cr_assert_not_null(f, "%s is missing", path);
    for (; (len = getline(&line, &cap, f)) > 0; lines++) {
        json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        cr_assert_not_null(j, "%s: line %zu is no JSON", path, lines + 1);
        const char *name = json_string_value(json_object_get(j, "name"));
        char *text = malloc((size_t)len);
        const size_t n = unbase64(json_string_value(json_object_get(j, "text")), text);
        static const size_t parts[] = {SIZE_MAX / 2, 1, 7, 4096};
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            encode_in_parts(e, text, n, parts[i], &ids);
            expect_ids(name, &ids, json_object_get(j, "ids"));
        }
        expect_text(v, name, &ids, text, n);
        free(text);
        json_decref(j);
    }
    cr_assert_gt(lines, 400, "%s: only %zu texts", path, lines);
    free(line);
    fclose(f);
    k3_ids_free(&ids);
    k3_encoder_free(e);
    k3_vocab_close(v);
}

static char *real_path(const char *tail)
{
    static char path[2][4096];
    static int turn;
    if (!k3_env("K3_REAL"))
        cr_skip_test("K3_REAL is not set");
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", k3_env("K3_REAL"), tail);
    return path[turn];
}

Test(text_vectors, small)
{
    check_lines(SMALL, "tests/fixtures/tok/small.jsonl");
}

Test(text_vectors, real)
{
    check_lines(real_path("."), real_path("../tok/real.jsonl"));
}

static void check_case(const k3_vocab *v, const json_t *c, bool special, const char *field)
{
    const json_t *t = json_object_get(c, "text");
    k3_encoder *e;
    k3_ids ids = {0};
    cr_assert_eq(k3_encoder_new(&e, v, special, NULL), 0);
    cr_assert_eq(k3_encode(e, json_string_value(t), json_string_length(t), &ids, NULL), 0);
    expect_ids(json_string_value(t), &ids, json_object_get(c, field));
    k3_ids_free(&ids);
    k3_encoder_free(e);
}

/* Plain and special mode side by side: text that spells a special stays text in the first. */
Test(text_vectors, real_special)
{
    k3_vocab *v;
    size_t i;
    json_t *c, *root = json_load_file(real_path("tokenizer_vectors.json"), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    cr_assert_not_null(root);
    cr_assert_eq(k3_vocab_open(&v, real_path("."), K3_VOCAB_ENCODE, NULL), 0);
    json_array_foreach(json_object_get(root, "ordinary"), i, c)
        check_case(v, c, false, "ids");
    cr_assert_gt(i, 60);
    json_array_foreach(json_object_get(root, "special"), i, c) {
        check_case(v, c, true, "ids_allow_special");
        check_case(v, c, false, "ids_no_special");
    }
    cr_assert_gt(i, 7);
    k3_vocab_close(v);
    json_decref(root);
}
