/* json_text.h - JSON written as Python writes it, and literals as they were given. */
#ifndef K3_JSON_TEXT_H
#define K3_JSON_TEXT_H

#include "text.h"

#include <jansson.h>

enum {
    K3_JSON_COMPACT = 1, /* "," and ":" instead of ", " and ": " */
    K3_JSON_SORTED = 2   /* names of objects sorted, at every depth */
};

/* Appends the text of j to *out. */
int k3_json_text(k3_bytes *out, json_t *j, int style, k3_err *err);

/* The text of an object known to be valid JSON, member by member: p is at its
 * brace or behind the value before; returns the next value's text, up to *end. */
const char *k3_json_next_value(const char *p, const char **end);

#endif
