/* JSON as Python's json.dumps(ensure_ascii=False) writes it, which is what the model was trained on. */
#include "json_text.h"

#include <stdio.h>
#include <stdlib.h>

static int put(k3_bytes *out, const char *s, k3_err *err)
{
    return k3_bytes_add(out, s, strlen(s), err);
}

static int put_string(k3_bytes *out, const char *s, size_t n, k3_err *err)
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

/* The shortest digits that read back as v; in plain notation from 1e-4 up to 1e16. */
static int put_real(k3_bytes *out, double v, k3_err *err)
{
    char text[40];
    int digits = 1;
    do
        snprintf(text, sizeof text, "%.*e", digits - 1, v);
    while (strtod(text, NULL) != v && ++digits <= 17);
    const int exponent = atoi(strchr(text, 'e') + 1), decimals = digits - 1 - exponent;
    if (exponent >= -4 && exponent < 16)
        snprintf(text, sizeof text, "%.*f", decimals > 1 ? decimals : 1, v);
    return put(out, text, err);
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

static int put_object(k3_bytes *out, json_t *j, int style, k3_err *err)
{
    size_t n;
    const char **names = names_of(j, style & K3_JSON_SORTED, &n);
    int status = names ? put(out, "{", err) : k3_fail(err, K3_ESYS, "out of memory");
    for (size_t i = 0; i < n && !status; i++) {
        if (i)
            status = put(out, style & K3_JSON_COMPACT ? "," : ", ", err);
        if (!status)
            status = put_string(out, names[i], strlen(names[i]), err);
        if (!status)
            status = put(out, style & K3_JSON_COMPACT ? ":" : ": ", err);
        if (!status)
            status = k3_json_text(out, json_object_get(j, names[i]), style, err);
    }
    free(names);
    return status ? status : put(out, "}", err);
}

int k3_json_text(k3_bytes *out, json_t *j, int style, k3_err *err)
{
    char number[24];
    int status;
    switch (json_typeof(j)) {
    case JSON_OBJECT:
        return put_object(out, j, style, err);
    case JSON_ARRAY:
        status = put(out, "[", err);
        for (size_t i = 0; i < json_array_size(j) && !status; i++) {
            if (i)
                status = put(out, style & K3_JSON_COMPACT ? "," : ", ", err);
            if (!status)
                status = k3_json_text(out, json_array_get(j, i), style, err);
        }
        return status ? status : put(out, "]", err);
    case JSON_STRING:
        return put_string(out, json_string_value(j), json_string_length(j), err);
    case JSON_INTEGER:
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(j));
        return put(out, number, err);
    case JSON_REAL:
        return put_real(out, json_real_value(j), err);
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

/* End of the string at p, behind its second quote. */
static const char *skip_string(const char *p)
{
    for (p++; *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p + 1;
}

static const char *skip_value(const char *p)
{
    if (*p == '"')
        return skip_string(p);
    if (*p != '{' && *p != '[')
        return p + strcspn(p, " \t\r\n,]}");
    for (int depth = 0;;) {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        depth += (*p == '{' || *p == '[') - (*p == '}' || *p == ']');
        p++;
        if (!depth)
            return p;
    }
}

const char *k3_json_next_value(const char *p, const char **end)
{
    p = skip_blanks(skip_string(skip_blanks(skip_blanks(p) + 1))); /* past { or , and the name */
    p = skip_blanks(p + 1);                                        /* past the colon */
    *end = skip_value(p);
    return p;
}
