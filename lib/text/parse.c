/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of a conversation to messages. Structure comes from control ids alone; whatever fits no rule of it stays text. */
#include "parse.h"

#include <stdlib.h>

#define TAG_MAX 65536 /* bytes of a tag with its attributes; more is text */

static const char *const control_names[PARSE_CONTROLS] = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|media_pad|>", "[EOS]"};

int k3_parser_new(k3_parser **parser, const k3_vocab *v, bool thinking, const k3_parse_events *on, void *arg, k3_err *err)
{
    k3_parser *p = calloc(1, sizeof *p);
    *parser = p;
    if (!p)
        return k3_fail(err, K3_ESYS, "out of memory");
    p->v = v;
    p->on = *on;
    p->arg = arg;
    p->thinking = thinking;
    for (int i = 0; i < PARSE_CONTROLS; i++)
        p->control[i] = k3_vocab_special(v, control_names[i], strlen(control_names[i]));
    return 0;
}

void k3_parser_free(k3_parser *p)
{
    if (!p)
        return;
    k3_bytes_free(&p->tag);
    k3_built_free(&p->built);
    free(p);
}

/* ---- what is reported ---- */

static k3_channel channel_of(const k3_parser *p)
{
    return p->place == IN_THINK ? K3_CHANNEL_THINKING : p->place == IN_ARGUMENT || p->place == IN_JSON ? K3_CHANNEL_TOOLS : K3_CHANNEL_RESPONSE;
}

static int text(k3_parser *p, const char *s, size_t n, k3_err *err)
{
    if (!n)
        return 0;
    if (p->place == OUTSIDE) { /* text that no message holds begins an answer */
        p->place = IN_MESSAGE;
        p->built.assistant = true;
    }
    p->built.any = true;
    int status = k3_bytes_add(k3_built_place(&p->built, p->place), s, n, err);
    return !status && p->on.text ? p->on.text(p->arg, channel_of(p), s, n, err) : status;
}

static int markup(k3_parser *p, const char *s, size_t n, k3_err *err)
{
    return p->on.markup ? p->on.markup(p->arg, s, n, err) : 0;
}

static int finish_call(k3_parser *p, k3_err *err)
{
    k3_bytes json = {0};
    int status = k3_built_call(&p->built, &json, err);
    if (!status && p->on.call && json.n)
        status = p->on.call(p->arg, json.data, json.n, err);
    k3_bytes_free(&json);
    return status;
}

/* Leaves places, innermost first, until `place` is the innermost. */
static int leave(k3_parser *p, enum place place, k3_err *err)
{
    int status = 0;
    if (p->place >= IN_ARGUMENT && place < IN_ARGUMENT) {
        status = k3_built_argument(&p->built, p->place == IN_JSON, err);
        p->place = IN_CALL;
    }
    if (!status && p->place == IN_CALL && place < IN_CALL)
        status = finish_call(p, err);
    p->place = place;
    return status;
}

static int finish_message(k3_parser *p, bool finished, k3_err *err)
{
    k3_bytes json = {0};
    p->left = finished ? OUTSIDE : p->place;
    int status = leave(p, OUTSIDE, err);
    if (!status && p->built.any)
        status = k3_built_message(&p->built, finished, &json, err);
    if (!status && p->built.any && p->on.message)
        status = p->on.message(p->arg, json.data, json.n, finished, err);
    k3_bytes_free(&json);
    k3_built_clear(&p->built);
    p->closed = false;
    return status;
}

/* ---- tags ---- */

/* The attribute `key` of the tag at hand, unescaped, into *value; false if it has none. */
static bool attribute(const k3_parser *p, const char *key, k3_bytes *value, int *status, k3_err *err)
{
    const char *s = p->tag.data + p->tag_at, *const end = p->tag.data + p->tag.n;
    const size_t n = strlen(key);
    value->n = 0;
    while (s < end && *s != ' ')
        s++;
    while (s < end) {
        const char *const name = s + 1, *const equals = memchr(s, '=', (size_t)(end - s)),
                   *const quote = equals && equals + 1 < end && equals[1] == '"' ? equals + 1 : NULL,
                   *const last = quote ? memchr(quote + 1, '"', (size_t)(end - quote - 1)) : NULL;
        if (!last)
            return false;
        s = last + 1;
        if ((size_t)(equals - name) != n || memcmp(name, key, n))
            continue;
        for (const char *q = quote + 1; q < last && !*status;) {
            const bool amp = last - q >= 5 && !memcmp(q, "&amp;", 5), quot = last - q >= 6 && !memcmp(q, "&quot;", 6);
            *status = k3_bytes_add(value, amp ? "&" : quot ? "\"" : q, 1, err);
            q += amp ? 5 : quot ? 6 : 1;
        }
        return true;
    }
    return false;
}

static bool tag_is(const k3_parser *p, const char *name)
{
    const size_t n = strlen(name), size = p->tag.n - p->tag_at;
    return size >= n && !memcmp(p->tag.data + p->tag_at, name, n) && (size == n || p->tag.data[p->tag_at + n] == ' ');
}

/* Enters a channel of an assistant's message. A channel that was not closed ends here. */
static int enter(k3_parser *p, enum place place, k3_err *err)
{
    int status = leave(p, IN_MESSAGE, err);
    p->place = place;
    p->built.any = true;
    return status;
}

/* An opening tag; *known is false if it has no place here. */
static int open_tag(k3_parser *p, bool *known, k3_err *err)
{
    k3_built *b = &p->built;
    int status = 0;
    *known = true;
    if (p->place == OUTSIDE && tag_is(p, "message")) {
        p->place = IN_MESSAGE;
        b->any = true;
        k3_bytes *const to[] = {&b->role, &b->name, &b->tool, &b->type};
        static const char *const keys[] = {"role", "name", "tool", "type"};
        for (int i = 0; i < 4 && !status; i++)
            attribute(p, keys[i], to[i], &status, err);
        b->assistant = b->role.n == 9 && !memcmp(b->role.data, "assistant", 9);
    } else if (b->assistant && !p->closed && p->place == IN_MESSAGE && tag_is(p, "think")) {
        status = enter(p, IN_THINK, err);
    } else if (b->assistant && !p->closed && (p->place == IN_MESSAGE || p->place == IN_THINK) && tag_is(p, "response")) {
        status = enter(p, IN_RESPONSE, err);
        b->responded = true;
    } else if (b->assistant && !p->closed && (p->place == IN_MESSAGE || p->place == IN_THINK || p->place == IN_RESPONSE) && tag_is(p, "tools")) {
        status = enter(p, IN_TOOLS, err);
    } else if (p->place == IN_TOOLS && tag_is(p, "call") && attribute(p, "tool", &b->call, &status, err)) {
        p->place = IN_CALL;
        b->calls++;
    } else if (p->place == IN_CALL && tag_is(p, "argument") && attribute(p, "key", &b->key, &status, err)) {
        attribute(p, "type", &b->value_type, &status, err);
        p->place = IN_ARGUMENT;
    } else if (p->place == IN_CALL && tag_is(p, "json") && !b->arguments.n && !b->block) {
        p->place = IN_JSON;
    } else {
        *known = false;
    }
    return status;
}

static int close_tag(k3_parser *p, bool *known, k3_err *err)
{
    static const char *const names[] = {
        [IN_THINK] = "think", [IN_RESPONSE] = "response", [IN_TOOLS] = "tools", [IN_CALL] = "call", [IN_ARGUMENT] = "argument", [IN_JSON] = "json"};
    static const enum place outer[] = {[IN_THINK] = IN_MESSAGE, [IN_RESPONSE] = IN_MESSAGE, [IN_TOOLS] = IN_MESSAGE,
                                       [IN_CALL] = IN_TOOLS, [IN_ARGUMENT] = IN_CALL, [IN_JSON] = IN_CALL};
    *known = true;
    if (p->place > IN_MESSAGE && tag_is(p, names[p->place]))
        return leave(p, outer[p->place], err);
    *known = p->place == IN_MESSAGE && !p->closed && tag_is(p, "message");
    p->closed |= *known;
    return 0;
}

/* What was held of a tag is text after all. */
static int give_up_tag(k3_parser *p, k3_err *err)
{
    const size_t n = p->tag.n;
    p->tag.n = 0;
    p->in_tag = NO_TAG;
    return text(p, p->tag.data, n, err);
}

static int end_tag(k3_parser *p, const char *sep, size_t n, k3_err *err)
{
    bool known;
    int status = p->in_tag == OPENING ? open_tag(p, &known, err) : close_tag(p, &known, err);
    if (!status)
        status = k3_bytes_add(&p->tag, sep, n, err);
    if (status)
        return status;
    if (!known)
        return give_up_tag(p, err);
    status = markup(p, p->tag.data, p->tag.n, err);
    p->tag.n = 0;
    p->in_tag = NO_TAG;
    return status;
}

/* ---- ids ---- */

static int begin(k3_parser *p, uint32_t id)
{
    p->begun = true;
    if (id == p->control[PARSE_OPEN])
        return 0;
    p->place = p->thinking ? IN_THINK : IN_RESPONSE;
    p->built.assistant = true;
    p->built.responded = !p->thinking;
    return 0;
}

int k3_parser_feed(k3_parser *p, uint32_t id, k3_err *err)
{
    size_t n;
    const char *s = k3_vocab_bytes(p->v, id, &n);
    int status = 0;
    if (!s)
        return k3_fail(err, K3_EDATA, "id %u is outside the vocabulary of %u ids", id, k3_vocab_size(p->v));
    if (!p->begun)
        begin(p, id);
    if (p->in_tag && (id == p->control[PARSE_SEP]))
        return end_tag(p, s, n, err);
    if (p->in_tag && id < k3_vocab_ranks(p->v) && p->tag.n + n < TAG_MAX)
        return k3_bytes_add(&p->tag, s, n, err);
    if (p->in_tag && (status = give_up_tag(p, err)))
        return status;
    if (id == p->control[PARSE_OPEN] || id == p->control[PARSE_CLOSE]) {
        p->in_tag = id == p->control[PARSE_OPEN] ? OPENING : CLOSING;
        p->tag_at = n;
        return k3_bytes_add(&p->tag, s, n, err);
    }
    if (p->place != OUTSIDE && (id == p->control[PARSE_END] || id == p->control[PARSE_EOS])) {
        status = markup(p, s, n, err);
        return status ? status : finish_message(p, p->closed, err);
    }
    if (id == p->control[PARSE_MEDIA] && p->place == IN_MESSAGE && !p->built.assistant) {
        status = markup(p, s, n, err);
        return status ? status : k3_built_image(&p->built, err);
    }
    return text(p, s, n, err);
}

int k3_parser_end(k3_parser *p, k3_err *err)
{
    int status = p->in_tag ? give_up_tag(p, err) : 0;
    if (!status && p->place != OUTSIDE)
        status = finish_message(p, p->closed, err);
    p->begun = false;
    return status;
}
