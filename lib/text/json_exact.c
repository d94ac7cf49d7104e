/* SPDX-License-Identifier: Apache-2.0 */
/* JSON without loss. jansson holds a number in 64 bits, and refuses larger ones, NaN and half a surrogate pair, which
 * Python reads. So it is given a copy of the text in which the i-th number is the integer i, the place of the number
 * in a list of spans of the text; nothing else in the tree is a number. Half a pair becomes U+FFFD in the copy, as it
 * does when the released tokenizer encodes it. Line numbers stay those of the text. */
#include "json_text.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- numbers ---- */

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

/* True if [p, end) is one number of JSON, or a word that Python reads as one. */
static bool is_number(const char *p, const char *end)
{
    const size_t n = (size_t)(end - p);
    const char *from;
    if ((n == 3 && !memcmp(p, "NaN", 3)) || (n == 8 && !memcmp(p, "Infinity", 8)) || (n == 9 && !memcmp(p, "-Infinity", 9)))
        return true;
    p += p < end && *p == '-';
    from = p;
    if ((p = skip_digits(p, end)) == from || (*from == '0' && p > from + 1))
        return false;
    if (p < end && *p == '.') {
        from = ++p;
        if ((p = skip_digits(p, end)) == from)
            return false;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        from = p;
        if ((p = skip_digits(p, end)) == from)
            return false;
    }
    return p == end;
}

/* A word outside strings, [p, end): its number in the list, or the word itself, which jansson judges. */
static int copy_word(k3_json *doc, k3_bytes *copy, size_t *room, const char *p, const char *end, k3_err *err)
{
    char index[24];
    if (!is_number(p, end))
        return k3_bytes_add(copy, p, (size_t)(end - p), err);
    if (doc->numbers == *room) {
        *room = *room ? 2 * *room : 16;
        struct k3_span *more = realloc(doc->number, *room * sizeof *more);
        if (!more)
            return k3_fail(err, K3_ESYS, "out of memory");
        doc->number = more;
    }
    doc->number[doc->numbers] = (struct k3_span){p, (size_t)(end - p)};
    return k3_bytes_add(copy, index, (size_t)snprintf(index, sizeof index, "%zu", doc->numbers++), err);
}

/* ---- strings ---- */

/* The code unit of \uHHHH at p, or -1. */
static int32_t escaped_unit(const char *p, const char *end)
{
    int32_t unit = 0;
    if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        const char c = p[i];
        const int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0)
            return -1;
        unit = unit << 4 | digit;
    }
    return unit;
}

/* An escape at p goes to the copy; returns what follows it. */
static const char *copy_escape(k3_bytes *copy, const char *p, const char *end, int *status, k3_err *err)
{
    const int32_t unit = escaped_unit(p, end), next = unit >= 0 ? escaped_unit(p + 6, end) : -1;
    size_t size = unit >= 0 ? 6 : end - p > 1 ? 2 : 1;
    const bool high = unit >= 0xD800 && unit < 0xDC00, low = unit >= 0xDC00 && unit < 0xE000;
    if (high && next >= 0xDC00 && next < 0xE000)
        size = 12;
    if (low || (high && size == 6))
        *status = k3_bytes_add(copy, "\\ufffd", 6, err);
    else
        *status = k3_bytes_add(copy, p, size, err);
    return p + size;
}

/* The string whose quote is at p goes to the copy; returns what follows it. */
static const char *copy_string(k3_bytes *copy, const char *p, const char *end, int *status, k3_err *err)
{
    const char *from = p++;
    while (p < end && *p != '"' && !*status) {
        if (*p != '\\') {
            p++;
            continue;
        }
        if (!(*status = k3_bytes_add(copy, from, (size_t)(p - from), err)))
            from = p = copy_escape(copy, p, end, status, err);
    }
    p += p < end;
    if (!*status)
        *status = k3_bytes_add(copy, from, (size_t)(p - from), err);
    return p;
}

/* ---- the tree ---- */

static int make_copy(k3_json *doc, k3_bytes *copy, const char *p, const char *end, k3_err *err)
{
    size_t room = 0;
    int status = k3_bytes_reserve(copy, (size_t)(end - p) + 1, err);
    while (p < end && !status) {
        if (*p == '"') {
            p = copy_string(copy, p, end, &status, err);
        } else if (memchr(" \t\r\n,:[]{}", *p, 10)) {
            status = k3_bytes_add(copy, p++, 1, err);
        } else {
            const char *word = p;
            while (p < end && !memchr(" \t\r\n,:[]{}\"", *p, 11))
                p++;
            status = copy_word(doc, copy, &room, word, p, err);
        }
    }
    return status;
}

/* A duplicate name is refused, except below "tools", "arguments" and "json_schema", whose content is not
 * ours: there the last one counts, in the place of the first, as in Python. To tell which it is, those values are
 * blotted out and what is left is read again. */
static int refuse_duplicates(const k3_bytes *copy, json_error_t *why, k3_err *err)
{
    static const char *const foreign[] = {"\"tools\"", "\"arguments\"", "\"json_schema\""};
    char *text = malloc(copy->n + 1);
    if (!text)
        return k3_fail(err, K3_ESYS, "out of memory");
    memcpy(text, copy->data, copy->n);
    text[copy->n] = 0;
    for (char *p = text; *p; p++) {
        if (*p != '"')
            continue;
        char *const name = p, *const after = (char *)k3_json_skip_string(p), *value = after + strspn(after, " \t\r\n");
        p = after - 1;
        for (unsigned i = 0; i < sizeof foreign / sizeof *foreign && *value == ':'; i++)
            if ((size_t)(after - name) == strlen(foreign[i]) && !memcmp(name, foreign[i], (size_t)(after - name))) {
                value += 1 + strspn(value + 1, " \t\r\n");
                char *const end = (char *)k3_json_skip_value(value);
                for (char *q = value; q < end; q++)
                    *q = *q == '\n' ? '\n' : ' ';
                *value = '0';
                p = end - 1;
                break;
            }
    }
    json_t *left = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, why);
    const bool good = left != NULL;
    json_decref(left);
    free(text);
    return good ? 0 : K3_EDATA;
}

int k3_json_read(k3_json *doc, const char *text, size_t size, int flags, json_error_t *why, k3_err *err)
{
    k3_bytes copy = {0};
    *doc = (k3_json){0};
    memset(why, 0, sizeof *why);
    int status = make_copy(doc, &copy, text, text + size, err);
    if (status)
        goto done;
    const size_t load = JSON_ALLOW_NUL | (flags & K3_JSON_ANY ? JSON_DECODE_ANY : 0);
    doc->root = json_loadb(copy.data, copy.n, load, why);
    status = doc->root ? 0 : K3_EDATA;
    if (doc->root && flags & K3_JSON_DISTINCT)
        status = refuse_duplicates(&copy, why, err);
    /* a number near the fault would be shown by its place in the list */
    char *near = strstr(why->text, " near '");
    if (status && near && strchr("-0123456789", near[7]))
        *near = 0;
done:
    k3_bytes_free(&copy);
    if (status)
        k3_json_free(doc);
    return status;
}

void k3_json_free(k3_json *doc)
{
    json_decref(doc->root);
    free(doc->number);
    *doc = (k3_json){0};
}

struct k3_span k3_json_number(const k3_json *doc, const json_t *j)
{
    const json_int_t i = json_integer_value(j);
    return i >= 0 && (size_t)i < doc->numbers ? doc->number[i] : (struct k3_span){"0", 1};
}
