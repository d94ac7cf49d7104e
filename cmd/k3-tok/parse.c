/* SPDX-License-Identifier: Apache-2.0 */
/* parse: ids of an answer on standard input, a line each, to its messages as JSON or to the text of one channel. */
#include "tok.h"

#include <stdlib.h>

struct parse {
    const tok_opts *o;
    k3_parser *parser;
    k3_id_reader reader;
    bool fed; /* ids in this line */
};

static int write_text(void *arg, k3_channel channel, const char *s, size_t n, k3_err *err)
{
    const struct parse *p = arg;
    return (int)channel == p->o->only && channel != K3_CHANNEL_TOOLS ? tok_write(s, n, err) : 0;
}

/* A call or a message, a line of its own. */
static int write_line(const char *json, size_t n, k3_err *err)
{
    int status = tok_write(json, n, err);
    return status ? status : tok_write("\n", 1, err);
}

static int write_call(void *arg, const char *json, size_t n, k3_err *err)
{
    const struct parse *p = arg;
    return p->o->only == K3_CHANNEL_TOOLS ? write_line(json, n, err) : 0;
}

static int write_message(void *arg, const char *json, size_t n, bool finished, k3_err *err)
{
    (void)arg;
    (void)finished;
    return write_line(json, n, err);
}

/* The end of a line of ids; a line of text ends with it, so that an empty one is an empty answer. */
static int end_line(struct parse *p, k3_err *err)
{
    int status = p->fed ? k3_parser_end(p->parser, err) : 0;
    p->fed = false;
    return !status && p->o->only >= 0 && p->o->only != K3_CHANNEL_TOOLS ? tok_write("\n", 1, err) : status;
}

static int take(struct parse *p, const char *s, const char *end, k3_err *err)
{
    uint32_t id;
    for (;;) {
        int got = k3_id_next(&p->reader, &s, end, &id, err);
        if (got == K3_ID_MORE)
            return tok_flush(err);
        if (got != K3_ID_VALUE && got != K3_ID_LINE)
            return got;
        p->fed |= got == K3_ID_VALUE;
        int status = got == K3_ID_VALUE ? k3_parser_feed(p->parser, id, err) : end_line(p, err);
        if (status)
            return status;
    }
}

/* What was read before an error is written all the same. */
static int run(struct parse *p, k3_err *err)
{
    char *buf = malloc(TOK_READ);
    k3_err later = {0};
    size_t got = 1;
    uint32_t id;
    int bad = buf ? 0 : k3_fail(&later, K3_ESYS, "out of memory");
    while (!bad && got && !(bad = tok_read(buf, TOK_READ, &got, &later)))
        bad = take(p, buf, buf + got, &later);
    free(buf);
    if (!bad) {
        bad = k3_id_end(&p->reader, &id, &later);
        p->fed |= bad == K3_ID_VALUE;
        bad = bad == K3_ID_VALUE ? k3_parser_feed(p->parser, id, &later) : bad == K3_ID_MORE ? 0 : bad;
    }
    int status = p->fed ? end_line(p, err) : 0;
    if (!status)
        status = tok_flush(err);
    if (!status && bad)
        *err = later;
    return status ? status : bad;
}

int tok_parse(const tok_opts *o, k3_err *err)
{
    struct parse p = {.o = o, .reader = {.name = "standard input"}};
    const k3_parse_events on = {.text = o->only < 0 ? NULL : write_text, .call = o->only < 0 ? NULL : write_call,
                                .message = o->only < 0 ? write_message : NULL};
    k3_vocab *vocab;
    int status = k3_vocab_open(&vocab, o->model, 0, err);
    if (status)
        return status;
    p.reader.vocab = k3_vocab_size(vocab);
    status = k3_parser_new(&p.parser, vocab, !o->no_thinking, &on, &p, err);
    if (!status)
        status = run(&p, err);
    k3_parser_free(p.parser);
    k3_vocab_close(vocab);
    return status;
}
