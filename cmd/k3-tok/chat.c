/* SPDX-License-Identifier: Apache-2.0 */
/* chat: a JSON request on standard input (with -l one a line) to the ids of its prompt. */
#include "tok.h"

#include <inttypes.h>
#include <string.h>

#define REQUEST_MAX (1u << 30) /* bytes */

struct chat {
    k3_chat *chat;
    tok_out out;
    k3_bytes text; /* requests not encoded yet */
    size_t seen;   /* bytes of it without a newline */
    uint64_t line; /* requests so far */
    k3_ids ids;
};

static int encode(struct chat *c, const char *json, size_t size, k3_err *err)
{
    char name[64] = "standard input";
    if (c->out.o->lines)
        snprintf(name, sizeof name, "standard input: request %" PRIu64, ++c->line);
    int status = k3_chat_encode(c->chat, json, size, name, &c->ids, err);
    if (!status)
        status = tok_out_begin(&c->out, err);
    if (!status)
        status = tok_out_ids(&c->out, &c->ids, err);
    return status ? status : tok_out_end(&c->out, err);
}

/* The complete lines at hand. */
static int take_lines(struct chat *c, k3_err *err)
{
    char *nl, *from = c->text.data;
    int status = 0;
    while (!status && (nl = memchr(c->text.data + c->seen, '\n', c->text.n - c->seen))) {
        status = encode(c, from, (size_t)(nl - from), err);
        from = nl + 1;
        c->seen = (size_t)(from - c->text.data);
    }
    c->text.n -= (size_t)(from - c->text.data);
    memmove(c->text.data, from, c->text.n);
    c->seen = c->text.n;
    return status ? status : tok_flush(err);
}

static int run(struct chat *c, k3_err *err)
{
    size_t got;
    int status;
    do {
        if ((status = k3_bytes_reserve(&c->text, TOK_READ, err)) ||
            (status = tok_read(c->text.data + c->text.n, TOK_READ, &got, err)))
            return status;
        c->text.n += got;
        if (c->text.n > REQUEST_MAX)
            return k3_fail(err, K3_EDATA, "standard input: a request of more than %u bytes", REQUEST_MAX);
        if (c->out.o->lines && (status = take_lines(c, err)))
            return status;
    } while (got);
    return c->out.o->lines && !c->text.n ? 0 : encode(c, c->text.data, c->text.n, err);
}

int tok_chat(const tok_opts *o, k3_err *err)
{
    struct chat c = {.out = {.o = o}};
    k3_vocab *vocab;
    int status = k3_vocab_open(&vocab, o->model, K3_VOCAB_ENCODE, err);
    if (status)
        return status;
    status = k3_chat_new(&c.chat, vocab, err);
    if (!status)
        status = run(&c, err);
    k3_chat_free(c.chat);
    k3_bytes_free(&c.text);
    k3_bytes_free(&c.out.text);
    k3_ids_free(&c.ids);
    k3_vocab_close(vocab);
    return status;
}
