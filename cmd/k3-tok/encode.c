/* encode: text on standard input to ids on standard output. */
#include "tok.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct encode {
    const tok_opts *o;
    k3_encoder *encoder;
    k3_ids ids;      /* encoded, not yet written */
    k3_bytes text;   /* their decimal text */
    uint64_t count;  /* ids written of this sequence */
    bool open;       /* the sequence has begun: its end is still to be written */
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

static int write_words(struct encode *e, k3_err *err)
{
    const char *const gap = e->o->json ? ", " : " ";
    const size_t gap_size = strlen(gap);
    int status = k3_bytes_reserve(&e->text, e->ids.n * 12, err);
    if (status)
        return status;
    char *p = e->text.data;
    for (size_t i = 0; i < e->ids.n; i++) {
        if (e->count + i) {
            memcpy(p, gap, gap_size);
            p += gap_size;
        }
        p += k3_id_format(p, e->ids.id[i]);
    }
    return tok_write(e->text.data, (size_t)(p - e->text.data), err);
}

static int write_binary(struct encode *e, k3_err *err)
{
    for (size_t i = 0; i < e->ids.n; i++) {
        const uint32_t id = e->ids.id[i];
        const uint8_t word[4] = {(uint8_t)id, (uint8_t)(id >> 8), (uint8_t)(id >> 16), (uint8_t)(id >> 24)};
        memcpy(e->ids.id + i, word, 4);
    }
    return tok_write(e->ids.id, e->ids.n * 4, err);
}

/* Writes and forgets the ids at hand. */
static int write_ids(struct encode *e, k3_err *err)
{
    int status = e->piece_status;
    if (e->ids.n && !status && !e->o->count && !e->o->pieces)
        status = e->o->binary ? write_binary(e, err) : write_words(e, err);
    e->count += e->ids.n;
    e->ids.n = 0;
    return status;
}

static int begin(struct encode *e, k3_err *err)
{
    e->open = true;
    e->count = 0;
    return e->o->json && !e->o->count ? tok_write("[", 1, err) : 0;
}

static int feed(struct encode *e, const char *s, size_t n, k3_err *err)
{
    int status = k3_encoder_feed(e->encoder, s, n, &e->ids, err);
    return status ? status : write_ids(e, err);
}

static int finish(struct encode *e, k3_err *err)
{
    char total[24];
    int status = k3_encoder_end(e->encoder, &e->ids, err);
    if (!status)
        status = write_ids(e, err);
    e->open = false;
    if (status || e->o->binary)
        return status;
    if (e->o->count) {
        const int n = snprintf(total, sizeof total, "%" PRIu64 "\n", e->count);
        return tok_write(total, (size_t)n, err);
    }
    return e->o->json ? tok_write("]\n", 2, err) : tok_write("\n", 1, err);
}

/* One read's worth; with -l every newline ends a text and belongs to none. */
static int take(struct encode *e, const char *s, size_t n, k3_err *err)
{
    int status = 0;
    while (n && !status) {
        const char *nl = e->o->lines ? memchr(s, '\n', n) : NULL;
        const size_t part = nl ? (size_t)(nl - s) : n;
        if (!e->open)
            status = begin(e, err);
        if (!status)
            status = feed(e, s, part, err);
        if (nl && !status)
            status = finish(e, err);
        s += part + (nl != NULL);
        n -= part + (nl != NULL);
    }
    return status;
}

static int run(struct encode *e, k3_err *err)
{
    char *buf = malloc(TOK_PART);
    size_t got;
    int status = buf ? 0 : k3_fail(err, K3_ESYS, "out of memory");
    if (!status && !e->o->lines)
        status = begin(e, err);
    while (!status) {
        if ((status = tok_read(buf, TOK_PART, &got, err)) || !got)
            break;
        if (!(status = take(e, buf, got, err)))
            status = tok_flush(err);
    }
    if (!status && e->open)
        status = finish(e, err);
    free(buf);
    return status;
}

int tok_encode(const tok_opts *o, k3_err *err)
{
    struct encode e = {.o = o, .err = err};
    k3_vocab *vocab;
    int status = k3_vocab_open(&vocab, o->model, K3_VOCAB_ENCODE, err);
    if (status)
        return status;
    status = k3_encoder_new(&e.encoder, vocab, o->special, err);
    if (!status && o->pieces)
        k3_encoder_on_piece(e.encoder, write_piece, &e);
    if (!status)
        status = run(&e, err);
    k3_encoder_free(e.encoder);
    k3_ids_free(&e.ids);
    k3_bytes_free(&e.text);
    k3_vocab_close(vocab);
    return status;
}
