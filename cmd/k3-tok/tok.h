/* SPDX-License-Identifier: Apache-2.0 */
/* tok.h - what the verbs of k3-tok share. */
#ifndef K3_TOK_H
#define K3_TOK_H

#include "k3_text.h"

typedef struct tok_opts {
    const char *model;
    bool special;      /* encode: names of special ids in the text are those ids */
    bool skip_special; /* decode: special ids give nothing */
    bool lines;        /* each line is a text, a request or (decode) the ids of a text */
    bool binary;       /* ids as 32-bit little-endian words */
    bool count;        /* encode, chat: print the number of ids */
    bool pieces;       /* encode: print one piece a line */
    bool json;
    int only;          /* parse: the channel that is printed, a k3_channel; -1 for messages */
    bool no_thinking;  /* parse: the answer begins in the response */
} tok_opts;

int tok_encode(const tok_opts *o, k3_err *err);
int tok_decode(const tok_opts *o, k3_err *err);
int tok_ids(const tok_opts *o, k3_err *err);
int tok_chat(const tok_opts *o, k3_err *err);
int tok_parse(const tok_opts *o, k3_err *err);

/* Sequences of ids on standard output: begin, ids any number of times, end. */
typedef struct tok_out {
    const tok_opts *o;
    bool open;      /* a sequence has begun and not ended */
    uint64_t count; /* its ids so far */
    k3_bytes text;  /* scratch */
} tok_out;
int tok_out_begin(tok_out *w, k3_err *err);
int tok_out_ids(tok_out *w, k3_ids *ids, k3_err *err); /* writes and forgets them */
int tok_out_end(tok_out *w, k3_err *err);

/* One read of standard input, at most `size` bytes; *got is 0 at its end. */
int tok_read(void *buf, size_t size, size_t *got, k3_err *err);
/* Bytes to standard output (buffered); tok_flush sends them. */
int tok_write(const void *data, size_t size, k3_err *err);
int tok_flush(k3_err *err);
/* What is escaped: everything that JSON wants, with U+FFFD or with \xHH for a byte that is not UTF-8; or backslash,
 * newline, carriage return and tab only. */
enum tok_escapes { TOK_JSON, TOK_BYTES, TOK_LINE };
int tok_write_escaped(const char *s, size_t size, enum tok_escapes how, k3_err *err);
/* A string in JSON quotes; bytes that are not UTF-8 become \xHH. */
int tok_write_quoted(const char *s, size_t size, k3_err *err);

#define TOK_READ (1u << 16) /* bytes of one read */

#endif
