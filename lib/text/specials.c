/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer_config.json: the names of the special ids, and the one that ends a generation. */
#include "text.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

#define CONFIG_FILE "tokenizer_config.json"
#define ADDED "added_tokens_decoder"

static const char *type_name(const json_t *j)
{
    static const char *const names[] = {"an object", "an array", "a string", "a whole number", "a fraction", "true", "false", "null"};
    return j ? names[json_typeof(j)] : "absent";
}

/* The file's object, with a table of added tokens in it; freed by the caller, also on failure. */
static int parse(const char *path, const char *data, size_t size, json_t **root, k3_err *err)
{
    json_error_t why;
    if (k3_byte_order_mark(data, size))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "%s", k3_byte_order_mark(data, size));
    if (!(*root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &why)))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "line %d: not JSON: %s", why.line, why.text);
    if (!json_is_object(*root))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "holds %s, not a JSON object", type_name(*root));
    if (!json_is_object(json_object_get(*root, ADDED)))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "\"" ADDED "\" is %s, not an object",
                          type_name(json_object_get(*root, ADDED)));
    return 0;
}

/* The id and the name of one entry of the table. */
static int read_entry(const char *path, const char *key, const json_t *entry, uint32_t *id, const char **name, size_t *size,
                      k3_err *err)
{
    uint64_t v;
    const json_t *content = json_object_get(entry, "content");
    if ((*key == '0' && key[1]) || k3_num_u64(key, ADDED, 0, UINT32_MAX - 1, &v, NULL))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "\"" ADDED "\": \"%.40s\" is not an id", key);
    if (!json_is_object(entry))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "\"" ADDED "\": \"%s\" is %s, not an object", key, type_name(entry));
    if (!json_is_string(content))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "\"" ADDED "\": \"%s\": \"content\" is %s, not a string", key,
                          type_name(content));
    if (!json_string_length(content))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "\"" ADDED "\": \"%s\": \"content\" is empty", key);
    *id = (uint32_t)v;
    *name = json_string_value(content);
    *size = json_string_length(content);
    return 0;
}

/* Appends the 256 names to v->bytes; names[i] is NULL for a reserved id. */
static int store_names(k3_vocab *v, const char *names[], const size_t sizes[], k3_err *err)
{
    size_t at = v->offset[v->ranks], total = at;
    for (unsigned i = 0; i < K3_SPECIALS; i++)
        total += names[i] ? sizes[i] : 40;
    char *p = total < UINT32_MAX ? realloc(v->bytes, total + SLACK) : NULL;
    if (!p)
        return k3_fail(err, K3_ESYS, "out of memory for the vocabulary");
    v->bytes = p;
    for (unsigned i = 0; i < K3_SPECIALS; i++) {
        v->named[i] = names[i] != NULL;
        if (names[i]) {
            memcpy(p + at, names[i], sizes[i]);
            at += sizes[i];
        } else {
            at += (size_t)snprintf(p + at, 40, "<|reserved_token_%" PRIu32 "|>", v->ranks + i);
        }
        v->offset[v->ranks + i + 1] = (uint32_t)at;
    }
    memset(p + at, 0, SLACK);
    return 0;
}

/* No two special ids may have one name. */
static int check_distinct(const k3_vocab *v, const char *path, k3_err *err)
{
    for (unsigned i = 0; i < K3_SPECIALS; i++) {
        size_t n;
        const char *name = k3_vocab_bytes(v, v->ranks + i, &n);
        const int64_t first = k3_vocab_special(v, name, n);
        if (first != v->ranks + i)
            return k3_fail_at(err, K3_EDATA, path, NULL, -1,
                              "\"" ADDED "\": ids %" PRId64 " and %" PRIu32 " have the same name \"%.*s\"", first, v->ranks + i,
                              (int)n, name);
    }
    return 0;
}

int k3_vocab_parse_specials(k3_vocab *v, const char *path, const char *data, size_t data_size, k3_err *err)
{
    const char *names[K3_SPECIALS] = {NULL}, *key, *name;
    size_t sizes[K3_SPECIALS] = {0}, size;
    json_t *root = NULL, *entry;
    uint32_t id;
    int status = parse(path, data, data_size, &root, err);
    if (status)
        goto done;
    json_object_foreach(json_object_get(root, ADDED), key, entry) {
        if ((status = read_entry(path, key, entry, &id, &name, &size, err)))
            goto done;
        if (id < v->ranks || id - v->ranks >= K3_SPECIALS) {
            status = k3_fail_at(err, K3_EDATA, path, NULL, -1,
                                "\"" ADDED "\": id %" PRIu32 " is not among the specials %" PRIu32 "..%" PRIu32
                                " that follow the %" PRIu32 " lines of tiktoken.model",
                                id, v->ranks, v->ranks + K3_SPECIALS - 1, v->ranks);
            goto done;
        }
        names[id - v->ranks] = name;
        sizes[id - v->ranks] = size;
    }
    status = store_names(v, names, sizes, err);
    if (!status)
        status = check_distinct(v, path, err);
done:
    json_decref(root);
    return status;
}

int k3_vocab_read_specials(k3_vocab *v, const char *dir, k3_err *err)
{
    char *path = NULL, *data = NULL;
    size_t size;
    int status = k3_text_read(dir, CONFIG_FILE, &path, &data, &size, err);
    if (!status)
        status = k3_vocab_parse_specials(v, path, data, size, err);
    free(path);
    free(data);
    return status;
}

/* eos_token is a name, or an object whose "content" is one. */
static int find_eos(const char *path, const json_t *root, uint32_t *id, bool *found, k3_err *err)
{
    const json_t *eos = json_object_get(root, "eos_token");
    const char *key, *name, *want;
    size_t size;
    json_t *entry;
    *found = false;
    if (!eos || json_is_null(eos))
        return 0;
    if (json_is_object(eos))
        eos = json_object_get(eos, "content");
    if (!json_is_string(eos))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "\"eos_token\" is %s, not a string", type_name(eos));
    want = json_string_value(eos);
    json_object_foreach(json_object_get(root, ADDED), key, entry) {
        int status = read_entry(path, key, entry, id, &name, &size, err);
        if (status)
            return status;
        if (!strcmp(name, want)) {
            *found = true;
            return 0;
        }
    }
    return k3_fail_at(err, K3_EDATA, path, NULL, -1, "\"eos_token\" is \"%.60s\", which \"" ADDED "\" does not name", want);
}

int k3_vocab_eos(const char *dir, uint32_t *ids, size_t max, size_t *n, k3_err *err)
{
    char *path = NULL, *data = NULL;
    json_t *root = NULL;
    size_t size;
    uint32_t id;
    bool found;
    *n = 0;
    int status = k3_text_path(&path, dir, CONFIG_FILE, err);
    if (status || access(path, F_OK))
        goto done;
    free(path);
    if (!(status = k3_text_read(dir, CONFIG_FILE, &path, &data, &size, err)) &&
        !(status = parse(path, data, size, &root, err)))
        status = find_eos(path, root, &id, &found, err);
    if (!status && found && max)
        ids[(*n)++] = id;
done:
    json_decref(root);
    free(path);
    free(data);
    return status;
}
