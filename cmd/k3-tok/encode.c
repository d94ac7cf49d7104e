/* SPDX-License-Identifier: Apache-2.0 */
/* encode: text on standard input to ids on standard output. */
#include "tok.h"

#include <stdlib.h>
#include <string.h>

struct encode {
    const tok_opts *o;
    k3_encoder *encoder;
    tok_out out;
    k3_ids ids;      /* encoded, not yet written */
    int piece_status;
    k3_err *err;
};

/* `id id id<TAB>"piece"` for --pieces */
static void write_piece(void *arg, const char *piece, size_t size, const uint32_t *ids, size_t n)
{
    struct encode *e = arg;
    for (size_t i = 0; i < n && !e->piece_status; i++) {
        char word[12];
        const unsigned len = k3_id_format(word, ids[i]);
        word[len] = i + 1 < n ? ' ' : '\t';
        e->piece_status = tok_write(word, len + 1, e->err);
    }
    if (!e->piece_status)
        e->piece_status = tok_write_quoted(piece, size, e->err);
    if (!e->piece_status)
        e->piece_status = tok_write("\n", 1, e->err);
}

/* The ids at hand go out. */
static int write_ids(struct encode *e, k3_err *err)
{
    return e->piece_status ? e->piece_status : tok_out_ids(&e->out, &e->ids, err);
}

static int feed(struct encode *e, const char *s, size_t n, k3_err *err)
{
    int status = k3_encoder_feed(e->encoder, s, n, &e->ids, err);
    return status ? status : write_ids(e, err);
}

static int finish(struct encode *e, k3_err *err)
{
    int status = k3_encoder_end(e->encoder, &e->ids, err);
    if (!status)
        status = write_ids(e, err);
    return status ? status : tok_out_end(&e->out, err);
}

/* One read's worth; with -l every newline ends a text and belongs to none. */
static int take(struct encode *e, const char *s, size_t n, k3_err *err)
{
    int status = 0;
    while (n && !status) {
        const char *nl = e->o->lines ? memchr(s, '\n', n) : NULL;
        const size_t len = nl ? (size_t)(nl - s) : n;
        if (!e->out.open)
            status = tok_out_begin(&e->out, err);
        if (!status)
            status = feed(e, s, len, err);
        if (nl && !status)
            status = finish(e, err);
        s += len + (nl != NULL);
        n -= len + (nl != NULL);
    }
    return status;
}

static int run(struct encode *e, k3_err *err)
{
    char *buf = malloc(TOK_READ);
    size_t got;
    int status = buf ? 0 : k3_fail(err, K3_ESYS, "out of memory");
    if (!status && !e->o->lines)
        status = tok_out_begin(&e->out, err);
    while (!status) {
        if ((status = tok_read(buf, TOK_READ, &got, err)) || !got)
            break;
        if (!(status = take(e, buf, got, err)))
            status = tok_flush(err);
    }
    if (!status && e->out.open)
        status = finish(e, err);
    free(buf);
    return status;
}

int tok_encode(const tok_opts *o, k3_err *err)
{
    struct encode e = {.o = o, .out = {.o = o}, .err = err};
    k3_vocab *vocab;
    int status = k3_vocab_open(&vocab, o->model, K3_VOCAB_ENCODE, err);
    if (status)
        return status;
    status = k3_encoder_new(&e.encoder, vocab, o->special, err);
    if (!status && o->pieces) {
        k3_encoder_on_piece(e.encoder, write_piece, &e);
        status = tok_write("ids\tpiece\n", 10, err);
    }
    if (!status)
        status = run(&e, err);
    k3_encoder_free(e.encoder);
    k3_ids_free(&e.ids);
    k3_bytes_free(&e.out.text);
    k3_vocab_close(vocab);
    return status;
}
