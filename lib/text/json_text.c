/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as Python's json.dumps(ensure_ascii=False) writes it, which is what the model was trained on. */
#include "json_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int put(k3_bytes *out, const char *s, k3_err *err)
{
    return k3_bytes_add(out, s, strlen(s), err);
}

int k3_json_quote(k3_bytes *out, const char *s, size_t n, k3_err *err)
{
    static const char letters[] = "btn?fr"; /* of 8 to 13 */
    int status = put(out, "\"", err);
    for (size_t i = 0, from = 0; i <= n && !status; i++) {
        const unsigned char c = i < n ? (unsigned char)s[i] : 0;
        char escape[8] = {'\\', (char)c};
        if (i < n && c >= 32 && c != '"' && c != '\\')
            continue;
        status = k3_bytes_add(out, s + from, i - from, err);
        from = i + 1;
        if (i == n || status)
            break;
        if (c >= 8 && c <= 13 && c != 11)
            escape[1] = letters[c - 8];
        else if (c < 32)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        status = put(out, escape, err);
    }
    return status ? status : put(out, "\"", err);
}

/* As Python prints a double: the shortest digits that read back as v; in plain notation from 1e-4 up to 1e16. */
static int put_real(k3_bytes *out, double v, k3_err *err)
{
    char text[40];
    int digits = 1;
    if (isnan(v) || isinf(v))
        return put(out, isnan(v) ? "NaN" : v < 0 ? "-Infinity" : "Infinity", err);
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, v);
    while (strtod(text, NULL) != v && ++digits <= 17);
    const int exponent = atoi(strchr(text, 'e') + 1), decimals = digits - 1 - exponent;
    if (exponent >= -4 && exponent < 16)
        snprintf(text, sizeof text, "%.*f", decimals > 1 ? decimals : 1, v);
    return put(out, text, err);
}

/* A number by its literal: whole ones keep their digits, the others become doubles. */
static int put_number(k3_bytes *out, struct k3_span literal, k3_err *err)
{
    char word[64];
    if (literal.size == 2 && !memcmp(literal.s, "-0", 2))
        return put(out, "0", err);
    if (strspn(literal.s, "-0123456789") >= literal.size)
        return k3_bytes_add(out, literal.s, literal.size, err);
    char *text = literal.size < sizeof word ? word : malloc(literal.size + 1);
    if (!text)
        return k3_fail(err, K3_ESYS, "out of memory");
    memcpy(text, literal.s, literal.size);
    text[literal.size] = 0;
    int status = put_real(out, strtod(text, NULL), err);
    if (text != word)
        free(text);
    return status;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The names of an object, in its own or in sorted order; malloc'ed. */
static const char **names_of(json_t *object, bool sorted, size_t *n)
{
    const char **names = malloc((json_object_size(object) + 1) * sizeof *names), *key;
    json_t *value;
    *n = 0;
    if (!names)
        return NULL;
    json_object_foreach(object, key, value)
        names[(*n)++] = key;
    /* UTF-8 in byte order is code points in order */
    if (sorted)
        qsort(names, *n, sizeof *names, by_name);
    return names;
}

static int put_object(k3_bytes *out, const k3_json *doc, json_t *j, int style, k3_err *err)
{
    size_t n;
    const char **names = names_of(j, style & K3_JSON_SORTED, &n);
    int status = names ? put(out, "{", err) : k3_fail(err, K3_ESYS, "out of memory");
    for (size_t i = 0; i < n && !status; i++) {
        if (i)
            status = put(out, style & K3_JSON_COMPACT ? "," : ", ", err);
        if (!status)
            status = k3_json_quote(out, names[i], strlen(names[i]), err);
        if (!status)
            status = put(out, style & K3_JSON_COMPACT ? ":" : ": ", err);
        if (!status)
            status = k3_json_text(out, doc, json_object_get(j, names[i]), style, err);
    }
    free(names);
    return status ? status : put(out, "}", err);
}

int k3_json_text(k3_bytes *out, const k3_json *doc, json_t *j, int style, k3_err *err)
{
    int status;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        return put_object(out, doc, j, style, err);
    case JSON_ARRAY:
        status = put(out, "[", err);
        for (size_t i = 0; i < json_array_size(j) && !status; i++) {
            if (i)
                status = put(out, style & K3_JSON_COMPACT ? "," : ", ", err);
            if (!status)
                status = k3_json_text(out, doc, json_array_get(j, i), style, err);
        }
        return status ? status : put(out, "]", err);
    case JSON_STRING:
        return k3_json_quote(out, json_string_value(j), json_string_length(j), err);
    case JSON_INTEGER:
        return put_number(out, k3_json_number(doc, j), err);
    case JSON_TRUE:
        return put(out, "true", err);
    case JSON_FALSE:
        return put(out, "false", err);
    default:
        return put(out, "null", err);
    }
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

const char *k3_json_skip_string(const char *p)
{
    for (p++; *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p + 1;
}

const char *k3_json_skip_value(const char *p)
{
    if (*p == '"')
        return k3_json_skip_string(p);
    if (*p != '{' && *p != '[')
        return p + strcspn(p, " \t\r\n,]}");
    for (int depth = 0;;) {
        if (*p == '"') {
            p = k3_json_skip_string(p);
            continue;
        }
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        p++;
        if (!depth)
            return p;
    }
}

bool k3_json_next_member(const char **p, struct k3_span *name, struct k3_span *value)
{
    const char *at = skip_blanks(*p);
    if (*at == '}')
        return false;
    at = skip_blanks(at + 1); /* past { or , */
    if (*at == '}')
        return false;
    name->s = at;
    at = k3_json_skip_string(at);
    name->size = (size_t)(at - name->s);
    at = skip_blanks(skip_blanks(at) + 1); /* past the colon */
    value->s = at;
    at = k3_json_skip_value(at);
    value->size = (size_t)(at - value->s);
    *p = at;
    return true;
}
