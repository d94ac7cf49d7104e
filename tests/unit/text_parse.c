/* SPDX-License-Identifier: Apache-2.0 */
/* Answers taken apart: message to ids to the same message, and no byte lost of any ids. */
#include "json_text.h"

#include <criterion/criterion.h>
#include <glob.h>
#include <stdlib.h>

static k3_vocab *vocab;

struct seen {
    k3_bytes all;      /* text and markup in order */
    k3_bytes messages; /* JSON, separated by commas */
    size_t unfinished;
};

static int on_text(void *arg, k3_channel channel, const char *s, size_t n, k3_err *err)
{
    (void)channel;
    return k3_bytes_add(&((struct seen *)arg)->all, s, n, err);
}

static int on_markup(void *arg, const char *s, size_t n, k3_err *err)
{
    return k3_bytes_add(&((struct seen *)arg)->all, s, n, err);
}

static int on_message(void *arg, const char *json, size_t n, bool finished, k3_err *err)
{
    struct seen *seen = arg;
    seen->unfinished += !finished;
    int status = seen->messages.n ? k3_bytes_add(&seen->messages, ",", 1, err) : 0;
    return status ? status : k3_bytes_add(&seen->messages, json, n, err);
}

static void parse(struct seen *seen, const k3_ids *ids, bool thinking)
{
    static const k3_parse_events on = {on_text, on_markup, NULL, on_message};
    k3_parser *p;
    k3_err err = {0};
    seen->all.n = seen->messages.n = seen->unfinished = 0;
    cr_assert_eq(k3_parser_new(&p, vocab, thinking, &on, seen, &err), 0);
    for (size_t i = 0; i < ids->n; i++)
        cr_assert_eq(k3_parser_feed(p, ids->id[i], &err), 0, "%s", err.text);
    cr_assert_eq(k3_parser_end(p, &err), 0, "%s", err.text);
    cr_assert_eq(k3_bytes_add(&seen->messages, "", 1, NULL), 0);
    seen->messages.n--;
    k3_parser_free(p);
}

/* The text of the ids is what was reported, byte for byte. */
static void expect_whole(const struct seen *seen, const k3_ids *ids, const char *what, unsigned long long seed)
{
    k3_decoder d = {.vocab = vocab};
    k3_bytes out = {0};
    size_t bad;
    cr_assert_eq(k3_decode(&d, ids->id, ids->n, &out, &bad, NULL), 0);
    cr_assert_eq(k3_decode_end(&d, &out, NULL), 0);
    cr_assert(out.n == seen->all.n && (!out.n || !memcmp(out.data, seen->all.data, out.n)), "%s, seed %llu", what, seed);
    k3_bytes_free(&out);
}

static k3_ids encode(k3_chat *chat, const char *request)
{
    k3_ids ids = {0};
    k3_err err = {0};
    cr_assert_eq(k3_chat_encode(chat, request, strlen(request), "request", &ids, &err), 0, "%s: %s", err.text, request);
    return ids;
}

/* A field of a message that says nothing: absent, null, or empty. */
static void leave_out_empty(json_t *message)
{
    static const char *const names[] = {"content", "reasoning_content", "name"};
    for (int i = 0; i < 3; i++) {
        const json_t *j = json_object_get(message, names[i]);
        if (json_is_null(j) || (json_is_string(j) && !json_string_length(j)))
            json_object_del(message, names[i]);
    }
}

static void expect_round_trip(k3_chat *chat, json_t *message, const char *what)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    if (strcmp(role, "assistant") && strcmp(role, "user"))
        return;
    struct seen seen = {0};
    char *text = json_dumps(message, 0), *request = malloc(strlen(text) + 200);
    sprintf(request, "{\"messages\": [%s], \"add_generation_prompt\": false, \"template_kwargs\": {\"thinking_effort\": null}}", text);
    k3_ids ids = encode(chat, request);
    parse(&seen, &ids, true);
    expect_whole(&seen, &ids, what, 0);
    json_t *got = json_loads(seen.messages.data, JSON_ALLOW_NUL, NULL), *want = json_deep_copy(message);
    cr_assert_not_null(got, "%s: %s", what, seen.messages.data);
    leave_out_empty(got);
    leave_out_empty(want);
    json_t *part = json_array_get(json_object_get(want, "content"), 1);
    json_object_del(part, "image_url"); /* an image is a single id */
    cr_expect(json_equal(got, want), "%s: %s gave %s", what, text, seen.messages.data);
    cr_expect_eq(seen.unfinished, 0);
    json_decref(got);
    json_decref(want);
    k3_bytes_free(&seen.all);
    k3_bytes_free(&seen.messages);
    k3_ids_free(&ids);
    free(request);
    free(text);
}

Test(text_parse, published_messages_come_back)
{
    if (!k3_env("K3_REAL"))
        cr_skip_test("K3_REAL is not set");
    char path[4096];
    glob_t found;
    k3_chat *chat;
    json_t *c, *message;
    size_t i, k, messages = 0;
    cr_assert_eq(k3_vocab_open(&vocab, k3_env("K3_REAL"), K3_VOCAB_ENCODE, NULL), 0);
    cr_assert_eq(k3_chat_new(&chat, vocab, NULL), 0);
    snprintf(path, sizeof path, "%s/chat_vectors.json", k3_env("K3_REAL"));
    json_t *all = json_load_file(path, 0, NULL);
    json_array_foreach(all, i, c)
        json_array_foreach(json_object_get(c, "messages"), k, message)
            messages++, expect_round_trip(chat, message, json_string_value(json_object_get(c, "name")));
    json_decref(all);
    snprintf(path, sizeof path, "%s/xtml_vectors/*_input.json", k3_env("K3_REAL"));
    cr_assert_eq(glob(path, 0, NULL, &found), 0);
    for (i = 0; i < found.gl_pathc; i++) {
        json_t *request = json_load_file(found.gl_pathv[i], 0, NULL);
        json_array_foreach(json_object_get(request, "messages"), k, message)
            messages++, expect_round_trip(chat, message, found.gl_pathv[i]);
        json_decref(request);
    }
    cr_expect_geq(messages, 20);
    globfree(&found);
    k3_chat_free(chat);
    k3_vocab_close(vocab);
}

/* Ids drawn at random, control ids often among them, and words of the markup: nothing is lost, the JSON is JSON. */
Test(text_parse, random_ids_lose_nothing)
{
    static const char *const words[] = {"message", "think", "response", "tools", "call", "argument", "json", " role", "=\"", "assistant", "\"", " tool", " key"};
    k3_encoder *encoder;
    k3_ids word[13] = {{0}}, ids = {0};
    struct seen seen = {0};
    uint32_t control[6];
    static const char *const names[] = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|media_pad|>", "[EOS]"};
    cr_assert_eq(k3_vocab_open(&vocab, "tests/fixtures/tiny/model", K3_VOCAB_ENCODE, NULL), 0);
    cr_assert_eq(k3_encoder_new(&encoder, vocab, false, NULL), 0);
    for (int i = 0; i < 13; i++)
        cr_assert_eq(k3_encode(encoder, words[i], strlen(words[i]), &word[i], NULL), 0);
    for (int i = 0; i < 6; i++)
        control[i] = (uint32_t)k3_vocab_special(vocab, names[i], strlen(names[i]));
    for (unsigned long long seed = 1; seed <= 10000; seed++) {
        uint64_t r = seed * 0x9E3779B97F4A7C15u;
        ids.n = 0;
        for (unsigned n = (unsigned)(seed % 60); n; n--) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            const k3_ids *w = &word[(r >> 20) % 13];
            cr_assert_eq(k3_ids_reserve(&ids, w->n + 1, NULL), 0);
            if ((r >> 8) % 4 == 0)
                ids.id[ids.n++] = (uint32_t)((r >> 30) % k3_vocab_size(vocab));
            else if ((r >> 8) % 4 == 1)
                ids.id[ids.n++] = control[(r >> 30) % 6];
            else
                for (size_t i = 0; i < w->n; i++)
                    ids.id[ids.n++] = w->id[i];
        }
        parse(&seen, &ids, seed % 2);
        expect_whole(&seen, &ids, "ids", seed);
        json_error_t why;
        char *list = malloc(seen.messages.n + 3);
        sprintf(list, "[%s]", seen.messages.data);
        json_t *j = json_loads(list, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
        cr_assert_not_null(j, "seed %llu: %s", seed, why.text);
        json_decref(j);
        free(list);
    }
}
