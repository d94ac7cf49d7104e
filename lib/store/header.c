/* SPDX-License-Identifier: Apache-2.0 */
/* One safetensors header, every rule of the format, against the model's tensor list.
 *
 * Every value is parsed by jansson, but member by member: a whole header as
 * one tree takes thirty times its size, 3 GB for a hostile 100 MB one. */
#include "store.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRY_MAX = 65536 }; /* bytes of one tensor's description */

struct scan {
    const char *file, *text;
    size_t at, end;
    uint64_t data; /* bytes after the header */
    const k3_config *c;
    k3_tensor part[K3_PARTS];
    struct header *h;
    struct problems *p;
};

/* What one entry says. */
struct entry {
    const char *name;
    size_t at;
    int dtype;
    uint64_t rank, *shape, bytes, begin, end;
};

/* A problem of the format: parsing of this shard ends with it. */
#define bad(s, tensor, at, ...) (k3_problem((s)->p, (s)->file, tensor, (int64_t)(at), __VA_ARGS__), -1)

static int no_memory(k3_err *err, const char *file)
{
    return k3_fail(err, K3_ESYS, "%s: out of memory for its header", file);
}

static void skip_blanks(struct scan *s)
{
    while (s->at < s->end && strchr(" \t\r\n", s->text[s->at]) && s->text[s->at])
        s->at++;
}

static char peek(struct scan *s)
{
    skip_blanks(s);
    return s->at < s->end ? s->text[s->at] : 0;
}

/* The position after the string that starts at `at`, or 0; *plain if its bytes stand for themselves. */
static size_t string_end(const struct scan *s, size_t at, bool *plain)
{
    *plain = true;
    for (at++; at < s->end; at++) {
        unsigned char ch = (unsigned char)s->text[at];
        if (ch == '"')
            return at + 1;
        if (ch < 0x20 || ch > 0x7e || ch == '\\')
            *plain = false;
        if (ch == '\\')
            at++;
    }
    return 0;
}

/* The position after the object or list that starts at `at`, or 0. */
static size_t value_end(const struct scan *s, size_t at)
{
    size_t depth = 0;
    bool plain;
    while (at < s->end) {
        char ch = s->text[at];
        if (ch == '"') {
            if (!(at = string_end(s, at, &plain)))
                return 0;
            continue;
        }
        depth += ch == '{' || ch == '[';
        at++;
        if ((ch == '}' || ch == ']') && --depth == 0)
            return at;
    }
    return 0;
}

/* Reads a key and its colon; *name is malloc'ed UTF-8 without NUL. */
static int read_key(struct scan *s, char **name, k3_err *err)
{
    bool plain;
    json_error_t je;
    size_t at = s->at, end;
    *name = NULL;
    if (peek(s) != '"')
        return bad(s, NULL, s->at, "the header is not valid JSON: a name in quotes is expected here");
    at = s->at;
    if (!(end = string_end(s, at, &plain)))
        return bad(s, NULL, at, "the header is not valid JSON: this string has no end");
    if (plain) {
        *name = strndup(s->text + at + 1, end - at - 2);
    } else {
        json_t *v = json_loadb(s->text + at, end - at, JSON_DECODE_ANY, &je); /* refuses \u0000 too */
        if (!v)
            return bad(s, NULL, at, "the header is not valid JSON: in a name: %.160s", je.text);
        *name = strdup(json_string_value(v));
        json_decref(v);
    }
    if (!*name)
        return no_memory(err, s->file);
    s->at = end;
    if (peek(s) != ':') {
        int r = bad(s, *name, s->at, "the header is not valid JSON: a colon is expected here");
        free(*name);
        *name = NULL;
        return r;
    }
    s->at++;
    skip_blanks(s);
    return 0;
}

/* After a member: 1 if another one follows, 0 at the end of the object, -1 on a problem. */
static int next_member(struct scan *s)
{
    char ch = peek(s);
    if (ch == ',' || ch == '}') {
        s->at++;
        return ch == ',';
    }
    return bad(s, NULL, s->at, "the header is not valid JSON: a comma or a closing brace is expected here");
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* `__metadata__`: strings to strings, no name twice. */
static int read_metadata(struct scan *s, k3_err *err)
{
    char **keys = NULL;
    size_t n = 0, cap = 0, start = s->at, end;
    int status = 0, more = 1;
    bool plain;
    json_error_t je;
    if (peek(s) != '{')
        return bad(s, "__metadata__", s->at, "is not an object");
    s->at++;
    if (peek(s) == '}') {
        s->at++;
        return 0;
    }
    while (!status && more == 1) {
        if (n == cap) {
            char **k = realloc(keys, (cap = cap ? 2 * cap : 16) * sizeof *k);
            if (!k) {
                status = no_memory(err, s->file);
                break;
            }
            keys = k;
        }
        if ((status = read_key(s, &keys[n], err)))
            break;
        n++;
        json_t *v = NULL;
        if (peek(s) != '"' || !(end = string_end(s, s->at, &plain)))
            status = bad(s, "__metadata__", s->at, "the value of \"%.100s\" is not a string", keys[n - 1]);
        else if (!plain && !(v = json_loadb(s->text + s->at, end - s->at, JSON_DECODE_ANY | JSON_ALLOW_NUL, &je)))
            status = bad(s, "__metadata__", s->at, "the value of \"%.100s\": %.160s", keys[n - 1], je.text);
        else
            s->at = end, more = next_member(s);
        json_decref(v);
        if (more < 0)
            status = more;
    }
    if (!status && n > 1) {
        qsort(keys, n, sizeof *keys, by_text);
        for (size_t i = 1; !status && i < n; i++)
            if (!strcmp(keys[i - 1], keys[i]))
                status = bad(s, "__metadata__", start, "\"%.100s\" is there twice", keys[i]);
    }
    while (n)
        free(keys[--n]);
    free(keys);
    return status;
}

/* A list of whole numbers >= 0 as a malloc'ed array. */
static int read_numbers(struct scan *s, const struct entry *e, json_t *list, const char *what, uint64_t **out, k3_err *err)
{
    size_t i, n = json_array_size(list);
    json_t *v;
    if (!json_is_array(list))
        return bad(s, e->name, e->at, "%s is %s", what, list ? "not a list" : "missing");
    if (!(*out = malloc((n ? n : 1) * sizeof **out)))
        return no_memory(err, s->file);
    json_array_foreach (list, i, v) {
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return bad(s, e->name, e->at, "%s[%zu] is not a whole number >= 0", what, i);
        (*out)[i] = (uint64_t)json_integer_value(v);
    }
    return 0;
}

static int read_fields(struct scan *s, struct entry *e, json_t *o, k3_err *err)
{
    uint64_t *offsets = NULL, bits;
    json_t *dtype = json_object_get(o, "dtype"), *shape = json_object_get(o, "shape"), *at = json_object_get(o, "data_offsets");
    if (!json_is_string(dtype))
        return bad(s, e->name, e->at, "dtype is %s", dtype ? "not a string" : "missing");
    if ((e->dtype = k3_dtype_find(json_string_value(dtype))) < 0)
        return bad(s, e->name, e->at, "dtype \"%.40s\" is unknown", json_string_value(dtype));
    int status = read_numbers(s, e, shape, "shape", &e->shape, err);
    if (status)
        return status;
    e->rank = json_array_size(shape);
    status = read_numbers(s, e, at, "data_offsets", &offsets, err);
    if (!status && json_array_size(at) != 2)
        status = bad(s, e->name, e->at, "data_offsets has %zu numbers, not 2", json_array_size(at));
    if (!status) {
        e->begin = offsets[0];
        e->end = offsets[1];
    }
    free(offsets);
    if (status)
        return status;
    if (json_object_size(o) != 3)
        return bad(s, e->name, e->at, "%zu fields, but only dtype, shape and data_offsets are known", json_object_size(o));
    if (e->end < e->begin)
        return bad(s, e->name, e->at, "data_offsets end at %" PRIu64 " before they begin at %" PRIu64, e->end, e->begin);
    bits = k3_dtype_table[e->dtype].bits;
    for (uint64_t i = 0; i < e->rank; i++)
        if (!k3_mul_u64(bits, e->shape[i], &bits))
            return bad(s, e->name, e->at, "the product of its shape overflows");
    if (bits % 8)
        return bad(s, e->name, e->at, "%" PRIu64 " bits are not whole bytes", bits);
    e->bytes = bits / 8;
    if (e->end - e->begin != e->bytes)
        return bad(s, e->name, e->at, "data_offsets give %" PRIu64 " bytes, shape and dtype %" PRIu64, e->end - e->begin, e->bytes);
    return 0;
}

/* "[3,4]" in buf, cut with "..." if it is long. */
static const char *show_shape(char *buf, size_t cap, const uint64_t *shape, uint64_t rank)
{
    size_t n = (size_t)snprintf(buf, cap, "[");
    uint64_t i = 0;
    for (; i < rank && n + 30 < cap; i++)
        n += (size_t)snprintf(buf + n, cap - n, i ? ",%" PRIu64 : "%" PRIu64, shape[i]);
    snprintf(buf + n, cap - n, i < rank ? ",...]" : "]");
    return buf;
}

/* A tensor that the model cannot use; the format is fine, so parsing goes on while there is room. */
#define unfit(s, e, ...) (k3_problem((s)->p, (s)->file, (e)->name, (int64_t)(e)->at, __VA_ARGS__) ? -1 : 1)

/* Compares with the schema and sets the record's name; 1 if the tensor is to be left out. */
static int match(struct scan *s, const struct entry *e, struct record *r)
{
    k3_name id;
    k3_tensor t;
    char a[100], b[100];
    const k3_config *c = s->c;
    if (!k3_name_parse(e->name, &id))
        return unfit(s, e, "the model has no tensor of this name");
    if (id.layer >= (int)c->layers)
        return unfit(s, e, "layer %d, but the config has %" PRIu64 " layers", id.layer, c->layers);
    bool moe = id.layer >= 0 && k3_is_moe(c, (uint64_t)id.layer);
    if (id.expert >= 0 && (!moe || (uint64_t)id.expert >= c->experts))
        return unfit(s, e, "layer %d has %" PRIu64 " experts by the config", id.layer, moe ? c->experts : 0);
    if (id.expert >= 0)
        t = s->part[id.part];
    else if (!k3_schema_tensor(c, id.layer, (k3_tensor_id)id.tensor, &t))
        return unfit(s, e, "layer %d (%s, %s) has no such tensor by the config", id.layer,
                     c->is_mla[id.layer] ? "MLA" : "KDA", moe ? "MoE" : "dense");
    const uint64_t want[3] = {t.rank == 1 ? t.cols : t.rows, t.rank == 3 ? 1 : t.cols, t.cols};
    bool padded = id.tensor == K3_T_A_LOG && e->rank == 1 && e->shape[0] > want[0];
    if (strcmp(k3_dtype_table[e->dtype].name, k3_dtype_name[t.dtype]) || e->rank != (uint64_t)t.rank ||
        (!padded && memcmp(e->shape, want, e->rank * sizeof *want)))
        return unfit(s, e, "is %s %s, the model needs %s %s", k3_dtype_table[e->dtype].name,
                     show_shape(a, sizeof a, e->shape, e->rank), k3_dtype_name[t.dtype],
                     show_shape(b, sizeof b, want, (uint64_t)t.rank));
    r->layer = (int16_t)id.layer;
    r->tensor = (int16_t)id.tensor;
    r->part = (int8_t)id.part;
    r->expert = id.expert < 0 ? 0 : (uint32_t)id.expert;
    return 0;
}

static int keep_ignored(struct scan *s, struct entry *e, char **name, struct record *r, k3_err *err)
{
    struct header *h = s->h;
    if (h->nignored == h->ignored_cap) {
        struct ignored *p = realloc(h->ignored, (h->ignored_cap = h->ignored_cap ? 2 * h->ignored_cap : 64) * sizeof *p);
        if (!p)
            return no_memory(err, s->file);
        h->ignored = p;
    }
    r->ignored = true;
    r->expert = (uint32_t)h->nignored;
    h->ignored[h->nignored++] = (struct ignored){.name = *name, .shape = e->shape, .rank = e->rank, .dtype = e->dtype};
    *name = NULL; /* both are the list's now */
    e->shape = NULL;
    return 0;
}

static int add_record(struct scan *s, struct entry *e, char **name, k3_err *err)
{
    struct header *h = s->h;
    struct record r = {.begin = e->begin, .end = e->end, .at = (uint32_t)e->at, .layer = -1, .tensor = -1, .part = -1};
    if (h->n == h->cap) {
        struct record *p = realloc(h->records, (h->cap = h->cap ? 2 * h->cap : 256) * sizeof *p);
        if (!p)
            return no_memory(err, s->file);
        h->records = p;
    }
    bool ignored = k3_name_ignored(e->name);
    int status = ignored ? keep_ignored(s, e, name, &r, err) : match(s, e, &r);
    if (!status)
        h->records[h->n++] = r;
    return !ignored && status == 1 ? 0 : status;
}

/* One tensor: `name` is freed or kept. */
static int read_tensor(struct scan *s, size_t at, char *name, k3_err *err)
{
    struct entry e = {.name = name, .at = at};
    json_error_t je;
    json_t *o = NULL;
    int status;
    size_t end = peek(s) == '{' ? value_end(s, s->at) : 0;
    if (peek(s) != '{')
        status = bad(s, name, s->at, "its description is not an object");
    else if (!end)
        status = bad(s, name, s->at, "the header is not valid JSON: it ends inside this description");
    else if (end - s->at > ENTRY_MAX)
        status = bad(s, name, s->at, "its description has %zu bytes, at most %d are read", end - s->at, ENTRY_MAX);
    else if (!(o = json_loadb(s->text + s->at, end - s->at, JSON_REJECT_DUPLICATES, &je)))
        status = bad(s, name, s->at + (size_t)(je.position > 0 ? je.position : 0), "the header is not valid JSON: %.160s", je.text);
    else if (!(status = read_fields(s, &e, o, err)))
        status = add_record(s, &e, &name, err);
    json_decref(o);
    free(e.shape);
    free(name);
    s->at = end;
    return status;
}

static int read_members(struct scan *s, k3_err *err)
{
    bool metadata = false;
    int status = 0, more = 1;
    if (peek(s) != '{')
        return bad(s, NULL, s->at, "the header is not a JSON object");
    s->at++;
    if (peek(s) == '}') {
        s->at++;
        more = 0;
    }
    while (!status && more == 1) {
        char *name;
        skip_blanks(s);
        size_t at = s->at;
        if ((status = read_key(s, &name, err)))
            break;
        if (strcmp(name, "__metadata__")) {
            status = read_tensor(s, at, name, err);
        } else {
            free(name);
            status = metadata ? bad(s, "__metadata__", at, "is there twice") : read_metadata(s, err);
            metadata = true;
        }
        if (!status && (more = next_member(s)) < 0)
            status = more;
    }
    if (!status && (skip_blanks(s), s->at < s->end))
        status = bad(s, NULL, s->at, "%zu bytes follow the JSON object in the header", s->end - s->at);
    return status;
}

int k3_header_parse(struct header *h, const struct shard_file *f, const char *name, const k3_config *c, struct problems *p,
                 k3_err *err)
{
    struct scan s = {.file = name, .text = f->text, .at = 8, .end = f->header, .c = c, .h = h, .p = p,
                     .data = (uint64_t)f->st.st_size - f->header};
    *h = (struct header){0};
    for (int i = 0; i < K3_PARTS; i++)
        k3_schema_part(c, (k3_part_id)i, &s.part[i]);
    int status = read_members(&s, err);
    if (status > 0)
        return status;
    if (!status && !p->n)
        k3_header_cover(h, name, f->header, s.data, p);
    return 0;
}

void k3_header_free(struct header *h)
{
    for (size_t i = 0; i < h->nignored; i++) {
        free(h->ignored[i].name);
        free(h->ignored[i].shape);
    }
    free(h->ignored);
    free(h->records);
    *h = (struct header){0};
}
