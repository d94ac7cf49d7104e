/* SPDX-License-Identifier: Apache-2.0 */
/* json_text.h - JSON read without loss, written as Python writes it, and literals as they were given. */
#ifndef K3_JSON_TEXT_H
#define K3_JSON_TEXT_H

#include "text.h"

#include <jansson.h>

/* ---- reading (json_exact.c) ---- */

struct k3_span {
    const char *s; /* [size], in a text that somebody else owns */
    size_t size;
};

/* A document as Python's json.loads reads it: numbers of any size, NaN and Infinity too, half surrogate pairs as
 * U+FFFD; of two members of one name the last. A number of the tree is known by k3_json_number only. */
typedef struct k3_json {
    json_t *root;
    struct k3_span *number; /* [numbers], in the text that was read */
    size_t numbers;
} k3_json;

enum {
    K3_JSON_ANY = 1,     /* the text may be any value, not only an object or array */
    K3_JSON_DISTINCT = 2 /* names must differ, except in tools, arguments and schemas */
};

/* The text must outlive the document. K3_EDATA leaves line and fault in *why and *err alone; K3_ESYS as usual. */
int k3_json_read(k3_json *doc, const char *text, size_t size, int flags, json_error_t *why, k3_err *err);
void k3_json_free(k3_json *doc);

/* The digits of a number of the tree as they were given. */
struct k3_span k3_json_number(const k3_json *doc, const json_t *j);

/* ---- writing (json_text.c) ---- */

enum {
    K3_JSON_COMPACT = 1, /* "," and ":" instead of ", " and ": " */
    K3_JSON_SORTED = 2   /* names of objects sorted, at every depth */
};

/* Appends the text of j, a value of doc, to *out, as json.dumps(ensure_ascii=False) writes it: whole numbers digit by
 * digit, fractions as the shortest digits of a double, Infinity where it overflows. */
int k3_json_text(k3_bytes *out, const k3_json *doc, json_t *j, int style, k3_err *err);

/* s[0..n) in JSON quotes. */
int k3_json_quote(k3_bytes *out, const char *s, size_t n, k3_err *err);

/* ---- walking over text that is known to be valid JSON ---- */

const char *k3_json_skip_string(const char *p); /* p at its first quote */
const char *k3_json_skip_value(const char *p);  /* p at its first byte */

/* The next member of an object: p is at its brace, or behind the value before. false at the end of the object. */
bool k3_json_next_member(const char **p, struct k3_span *name, struct k3_span *value);

#endif
