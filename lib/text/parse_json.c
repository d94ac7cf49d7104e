/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as JSON, in the shape that chat requests have. */
#include "parse.h"

#include <inttypes.h>

static int put(k3_bytes *out, const char *s, k3_err *err)
{
    return k3_bytes_add(out, s, strlen(s), err);
}

/* s in JSON quotes; bytes that are no UTF-8 become U+FFFD, of which JSON has no others. */
static int quote(k3_bytes *out, const k3_bytes *s, k3_err *err)
{
    k3_bytes clean = {0};
    const uint8_t *p = (const uint8_t *)s->data, *const end = p + s->n;
    int status = 0;
    while (p < end && !status) {
        bool incomplete;
        const unsigned n = k3_utf8_length(p, end, &incomplete);
        status = n ? k3_bytes_add(&clean, p, n, err) : put(&clean, "\xEF\xBF\xBD", err);
        p += n ? n : 1;
    }
    if (!status)
        status = k3_json_quote(out, clean.data, clean.n, err);
    k3_bytes_free(&clean);
    return status;
}

/* `before`, then s in quotes. */
static int member(k3_bytes *out, const char *before, const k3_bytes *s, k3_err *err)
{
    int status = put(out, before, err);
    return status ? status : quote(out, s, err);
}

k3_bytes *k3_built_place(k3_built *b, enum place place)
{
    return place == IN_THINK ? &b->thinking : place == IN_ARGUMENT || place == IN_JSON ? &b->value : &b->content;
}

/* Whether the value at hand can stand in JSON as it is. */
static bool is_literal(const k3_built *b)
{
    json_error_t why;
    k3_json doc;
    if (b->value_type.n == 6 && !memcmp(b->value_type.data, "string", 6))
        return false;
    const bool good = !k3_json_read(&doc, b->value.data ? b->value.data : "", b->value.n, K3_JSON_ANY, &why, NULL);
    const bool literal = good && !json_is_string(doc.root);
    if (good)
        k3_json_free(&doc);
    return literal;
}

int k3_built_argument(k3_built *b, bool block, k3_err *err)
{
    int status;
    if (block) {
        b->block = true;
        status = k3_bytes_add(&b->arguments, b->value.data, b->value.n, err);
    } else {
        status = b->arguments.n && !b->block ? put(&b->arguments, ",", err) : 0;
        if (!status)
            status = quote(&b->arguments, &b->key, err);
        if (!status)
            status = put(&b->arguments, ":", err);
        if (!status)
            status = is_literal(b) ? k3_bytes_add(&b->arguments, b->value.data, b->value.n, err) : quote(&b->arguments, &b->value, err);
    }
    b->value.n = b->value_type.n = 0;
    return status;
}

int k3_built_call(k3_built *b, k3_bytes *json, k3_err *err)
{
    char index[24];
    k3_bytes id = {0}, text = {0};
    snprintf(index, sizeof index, ":%u", b->calls - 1);
    int status = k3_bytes_add(&id, b->call.data, b->call.n, err);
    if (!status)
        status = put(&id, index, err);
    if (!status && !b->block)
        status = put(&text, "{", err);
    if (!status)
        status = k3_bytes_add(&text, b->arguments.data, b->arguments.n, err);
    if (!status && !b->block)
        status = put(&text, "}", err);
    if (!status)
        status = member(json, "{\"id\": ", &id, err);
    if (!status)
        status = member(json, ", \"type\": \"function\", \"function\": {\"name\": ", &b->call, err);
    if (!status)
        status = member(json, ", \"arguments\": ", &text, err);
    if (!status)
        status = put(json, "}}", err);
    if (!status)
        status = b->tool_calls.n ? put(&b->tool_calls, ", ", err) : 0;
    if (!status)
        status = k3_bytes_add(&b->tool_calls, json->data, json->n, err);
    k3_bytes_free(&id);
    k3_bytes_free(&text);
    b->arguments.n = 0;
    b->block = false;
    return status;
}

/* The text so far becomes a part of the content. */
static int text_part(k3_built *b, k3_err *err)
{
    int status = 0;
    if (!b->content.n)
        return 0;
    if (b->parts.n)
        status = put(&b->parts, ", ", err);
    if (!status)
        status = member(&b->parts, "{\"type\": \"text\", \"text\": ", &b->content, err);
    b->content.n = 0;
    return status ? status : put(&b->parts, "}", err);
}

int k3_built_image(k3_built *b, k3_err *err)
{
    int status = text_part(b, err);
    if (!status && b->parts.n)
        status = put(&b->parts, ", ", err);
    return status ? status : put(&b->parts, "{\"type\": \"image_url\"}", err);
}

int k3_built_message(k3_built *b, bool finished, k3_bytes *json, k3_err *err)
{
    char word[] = "assistant";
    const k3_bytes assistant = {word, 9, 0};
    int status = member(json, "{\"role\": ", b->role.n ? &b->role : &assistant, err);
    if (!status && b->name.n)
        status = member(json, ", \"name\": ", &b->name, err);
    if (!status && b->tool.n)
        status = member(json, ", \"tool\": ", &b->tool, err);
    if (!status && b->type.n)
        status = member(json, ", \"type\": ", &b->type, err);
    if (!status && b->thinking.n)
        status = member(json, ", \"reasoning_content\": ", &b->thinking, err);
    if (!status && b->parts.n) {
        status = text_part(b, err);
        if (!status)
            status = put(json, ", \"content\": [", err);
        if (!status)
            status = k3_bytes_add(json, b->parts.data, b->parts.n, err);
        if (!status)
            status = put(json, "]", err);
    } else if (!status) {
        status = member(json, ", \"content\": ", &b->content, err);
    }
    if (!status && b->tool_calls.n) {
        status = put(json, ", \"tool_calls\": [", err);
        if (!status)
            status = k3_bytes_add(json, b->tool_calls.data, b->tool_calls.n, err);
        if (!status)
            status = put(json, "]", err);
    }
    if (!status && !finished)
        status = put(json, ", \"unfinished\": true", err);
    return status ? status : put(json, "}", err);
}

static k3_bytes *const *all_of(k3_built *b, k3_bytes *all[13])
{
    k3_bytes *const list[13] = {&b->role,      &b->name, &b->tool,       &b->type,  &b->thinking,  &b->content, &b->parts, &b->call,
                                &b->arguments, &b->key,  &b->value_type, &b->value, &b->tool_calls};
    memcpy(all, list, sizeof list);
    return all;
}

void k3_built_clear(k3_built *b)
{
    k3_bytes *all[13];
    all_of(b, all);
    for (int i = 0; i < 13; i++)
        all[i]->n = 0;
    b->any = b->assistant = b->responded = b->block = false;
    b->calls = 0;
}

void k3_built_free(k3_built *b)
{
    k3_bytes *all[13];
    all_of(b, all);
    for (int i = 0; i < 13; i++)
        k3_bytes_free(all[i]);
}
