/* SPDX-License-Identifier: Apache-2.0 */
/* The segments of a chat prompt: control tokens are single ids, everything
 * else is plain text, each segment encoded on its own, so that nothing a
 * message holds can become a control token. */
#include "chat.h"

#include <stdarg.h>
#include <stdlib.h>

static const char *const control_names[CONTROLS] = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|media_pad|>"};

int k3_chat_new(k3_chat **chat, const k3_vocab *v, k3_err *err)
{
    k3_chat *c = calloc(1, sizeof *c);
    int status = c ? k3_encoder_new(&c->encoder, v, false, err) : k3_fail(err, K3_ESYS, "out of memory");
    for (int i = 0; i < CONTROLS && !status; i++) {
        const int64_t id = k3_vocab_special(v, control_names[i], strlen(control_names[i]));
        c->control[i] = (uint32_t)id;
        if (id < 0)
            status = k3_fail(err, K3_EDATA, "the vocabulary has no special id called %s, which chat needs", control_names[i]);
    }
    if (status) {
        k3_chat_free(c);
        c = NULL;
    }
    *chat = c;
    return status;
}

void k3_chat_free(k3_chat *c)
{
    if (!c)
        return;
    k3_encoder_free(c->encoder);
    k3_bytes_free(&c->scratch);
    free(c);
}

void k3_seg_refuse(k3_chat *c, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    if (c->status)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->status = k3_fail_at(c->err, K3_EDATA, c->name, NULL, -1, "%s", text);
}

void k3_seg_text(k3_chat *c, const char *s, size_t n)
{
    if (!c->status && n)
        c->status = k3_encode(c->encoder, s, n, c->out, c->err);
}

void k3_seg_words(k3_chat *c, const char *s)
{
    k3_seg_text(c, s, strlen(s));
}

void k3_seg_control(k3_chat *c, int which)
{
    if (!c->status && !(c->status = k3_ids_reserve(c->out, 1, c->err)))
        c->out->id[c->out->n++] = c->control[which];
}

void k3_seg_attribute(k3_chat *c, const char *key, const char *value, size_t size)
{
    char segment[16];
    int n = snprintf(segment, sizeof segment, " %s", key);
    k3_seg_text(c, segment, (size_t)n);
    k3_seg_words(c, "=\"");
    c->scratch.n = 0;
    for (const char *p = value; p < value + size && !c->status; p++)
        c->status = *p == '&'   ? k3_bytes_add(&c->scratch, "&amp;", 5, c->err)
                    : *p == '"' ? k3_bytes_add(&c->scratch, "&quot;", 6, c->err)
                                : k3_bytes_add(&c->scratch, p, 1, c->err);
    k3_seg_text(c, c->scratch.data, c->scratch.n);
    k3_seg_words(c, "\"");
}

void k3_seg_open(k3_chat *c, const char *tag, ...)
{
    va_list ap;
    const char *key;
    k3_seg_control(c, OPEN);
    k3_seg_words(c, tag);
    va_start(ap, tag);
    while ((key = va_arg(ap, const char *))) {
        const char *value = va_arg(ap, const char *);
        if (value)
            k3_seg_attribute(c, key, value, strlen(value));
    }
    va_end(ap);
    k3_seg_control(c, SEP);
}

void k3_seg_close(k3_chat *c, const char *tag)
{
    k3_seg_control(c, CLOSE);
    k3_seg_words(c, tag);
    k3_seg_control(c, SEP);
}

void k3_seg_end_message(k3_chat *c)
{
    k3_seg_close(c, "message");
    k3_seg_control(c, END_OF_MSG);
}

void k3_seg_system(k3_chat *c, const char *type, const char *before, json_t *json, const char *after)
{
    k3_seg_open(c, "message", "role", "system", "type", type, NULL);
    c->scratch.n = 0;
    if (!c->status)
        c->status = k3_bytes_add(&c->scratch, before, strlen(before), c->err);
    if (!c->status && json)
        c->status = k3_json_text(&c->scratch, c->doc, json, K3_JSON_COMPACT | K3_JSON_SORTED, c->err);
    if (!c->status)
        c->status = k3_bytes_add(&c->scratch, after, strlen(after), c->err);
    k3_seg_text(c, c->scratch.data, c->scratch.n);
    k3_seg_end_message(c);
}
