/* SPDX-License-Identifier: Apache-2.0 */
/* decode: ids on standard input to text on standard output, as they come, or a line of text for a line of ids. */
#include "tok.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct decode {
    const tok_opts *o;
    bool by_line;      /* --lines or --json: a line of ids is a line of text */
    bool open;         /* such a line has begun and not ended */
    k3_decoder decoder;
    k3_id_reader reader;
    uint8_t word[4];   /* --binary: an id cut by the end of a read, [held] */
    unsigned held;
    k3_ids ids;        /* of this read */
    k3_bytes text;
};

/* The text of a part of a line, with escapes. */
static int write_text(struct decode *d, k3_err *err)
{
    if (!d->by_line)
        return tok_write(d->text.data, d->text.n, err);
    int status = d->o->json && !d->open ? tok_write("\"", 1, err) : 0;
    d->open = true;
    return status ? status : tok_write_escaped(d->text.data, d->text.n, d->o->json ? TOK_JSON : TOK_LINE, err);
}

/* Decodes and writes what was parsed. */
static int put(struct decode *d, k3_err *err)
{
    size_t bad;
    if (!d->ids.n)
        return 0;
    d->text.n = 0;
    int status = k3_decode(&d->decoder, d->ids.id, d->ids.n, &d->text, &bad, err);
    d->ids.n = 0;
    return status ? status : write_text(d, err);
}

/* The tail that nothing completed, and the end of the line. */
static int end_text(struct decode *d, k3_err *err)
{
    int status = put(d, err);
    d->text.n = 0;
    if (!status)
        status = k3_decode_end(&d->decoder, &d->text, err);
    if (!status)
        status = write_text(d, err);
    if (!status && d->by_line)
        status = tok_write(d->o->json ? "\"\n" : "\n", d->o->json ? 2 : 1, err);
    d->open = false;
    return status;
}

/* Ids in decimal; those before a bad one are in d->ids. */
static int parse_words(struct decode *d, const char *s, size_t n, k3_err *err)
{
    const char *const end = s + n;
    uint32_t id;
    /* an id and its separator are two bytes or more */
    int got = k3_ids_reserve(&d->ids, n / 2 + 1, err);
    while (!got) {
        got = k3_id_next(&d->reader, &s, end, &id, err);
        if (got == K3_ID_MORE)
            return 0;
        if (got == K3_ID_VALUE)
            d->ids.id[d->ids.n++] = id, got = 0;
        else if (got == K3_ID_LINE)
            got = d->by_line ? end_text(d, err) : 0;
    }
    return got;
}

static int parse_binary(struct decode *d, const char *s, size_t n, k3_err *err)
{
    int status = k3_ids_reserve(&d->ids, n / 4 + 1, err);
    for (size_t i = 0; i < n && !status; i++) {
        d->word[d->held++] = (uint8_t)s[i];
        d->reader.byte++;
        if (d->held < 4)
            continue;
        const uint32_t id = d->word[0] | d->word[1] << 8 | d->word[2] << 16 | (uint32_t)d->word[3] << 24;
        d->held = 0;
        d->reader.count++;
        if (id >= d->reader.vocab)
            return k3_fail_at(err, K3_EDATA, d->reader.name, NULL, (int64_t)d->reader.byte - 4,
                              "id %" PRIu32 " is outside the vocabulary of %" PRIu32 " ids (id number %" PRIu64 ")", id,
                              d->reader.vocab, d->reader.count);
        d->ids.id[d->ids.n++] = id;
    }
    return status;
}

static int finish(struct decode *d, k3_err *err)
{
    uint32_t id;
    int status = 0;
    if (d->held)
        return k3_fail_at(err, K3_EDATA, d->reader.name, NULL, (int64_t)(d->reader.byte - d->held),
                          "ends inside an id: %u of 4 bytes", d->held);
    const int got = k3_id_end(&d->reader, &id, err);
    if (got != K3_ID_VALUE && got != K3_ID_MORE)
        return got;
    if (got == K3_ID_VALUE && !(status = k3_ids_reserve(&d->ids, 1, err))) {
        d->ids.id[d->ids.n++] = id;
        status = put(d, err);
    }
    return status;
}

static int run(struct decode *d, k3_err *err)
{
    char *buf = malloc(TOK_READ);
    k3_err later = {0};
    size_t got;
    int status = buf ? 0 : k3_fail(err, K3_ESYS, "out of memory"), bad = 0;
    while (!status && !bad) {
        if ((bad = tok_read(buf, TOK_READ, &got, &later)) || !got)
            break;
        bad = d->o->binary ? parse_binary(d, buf, got, &later) : parse_words(d, buf, got, &later);
        /* A failure to write counts more than the bad id that follows. */
        status = put(d, err);
        status = status ? status : tok_flush(err);
    }
    free(buf);
    if (!status && !bad)
        bad = finish(d, &later);
    if (!status && (d->open || !d->by_line))
        status = end_text(d, err);
    status = status ? status : tok_flush(err);
    if (!status && bad)
        *err = later;
    return status ? status : bad;
}

int tok_decode(const tok_opts *o, k3_err *err)
{
    k3_vocab *vocab;
    int status = k3_vocab_open(&vocab, o->model, 0, err);
    if (status)
        return status;
    struct decode d = {
        .o = o,
        .by_line = o->lines || o->json,
        .decoder = {.vocab = vocab, .skip_special = o->skip_special},
        .reader = {.name = "standard input", .vocab = k3_vocab_size(vocab)},
    };
    status = run(&d, err);
    k3_ids_free(&d.ids);
    k3_bytes_free(&d.text);
    k3_vocab_close(vocab);
    return status;
}
