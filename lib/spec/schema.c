/* SPDX-License-Identifier: Apache-2.0 */
/* schema.def expanded: which tensor exists where, its shape and its name. */
#include "k3_spec.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const k3_dtype_name[K3_DTYPES] = {"BF16", "F32", "U8"};
const uint8_t k3_dtype_size[K3_DTYPES] = {2, 4, 1};

static const char *const names[K3_TENSORS] = {
#define VECTOR(id, name, ...) [K3_T_##id] = name,
#define MATRIX(id, name, ...) [K3_T_##id] = name,
#define ROWS(id, name, ...) [K3_T_##id] = name,
#include "schema.def"
};

static const char *const part_names[K3_PARTS] = {
#define EXPERT(id, name, ...) [K3_P_##id] = name,
#include "schema.def"
};

static const k3_place places[K3_TENSORS] = {
#define VECTOR(id, name, dtype, rank, rows, cols, layers) [K3_T_##id] = K3_IN_##layers,
#define MATRIX(id, name, dtype, rows, cols, group, layers) [K3_T_##id] = K3_IN_##layers,
#define ROWS(id, name, dtype, rows, cols) [K3_T_##id] = K3_IN_EMBED,
#include "schema.def"
};

static bool exists(const k3_config *c, int layer, k3_tensor_id id)
{
    if (places[id] == K3_IN_HEAD || places[id] == K3_IN_EMBED)
        return layer < 0;
    if (layer < 0 || (uint64_t)layer >= c->layers)
        return false;
    switch (places[id]) {
    case K3_IN_KDA:
        return !c->is_mla[layer];
    case K3_IN_MLA:
        return c->is_mla[layer];
    case K3_IN_DENSE:
        return !k3_is_moe(c, (uint64_t)layer);
    case K3_IN_MOE:
        return k3_is_moe(c, (uint64_t)layer);
    default:
        return true;
    }
}

bool k3_schema_tensor(const k3_config *c, int layer, k3_tensor_id id, k3_tensor *t)
{
    k3_tensor unused;
    if (!exists(c, layer, id))
        return false;
    bool mla = layer >= 0 && c->is_mla[layer];
    t = t ? t : &unused;
    *t = (k3_tensor){.name = names[id], .place = places[id], .rank = 2, .group = 1};
#define SET(t_, d, u, r, n)                                                              \
    (t_)->dtype = K3_##d, (t_)->use = u, (t_)->rows = (r), (t_)->cols = (n);             \
    break;
    switch (id) {
#define VECTOR(id_, name_, dtype_, rank_, rows_, cols_, layers_)                         \
    case K3_T_##id_:                                                                     \
        t->rank = rank_;                                                                 \
        SET(t, dtype_, K3_USE_VECTOR, rows_, cols_)
#define MATRIX(id_, name_, dtype_, rows_, cols_, group_, layers_)                        \
    case K3_T_##id_:                                                                     \
        t->group = group_;                                                               \
        SET(t, dtype_, K3_USE_MATRIX, rows_, cols_)
#define ROWS(id_, name_, dtype_, rows_, cols_)                                           \
    case K3_T_##id_:                                                                     \
        SET(t, dtype_, K3_USE_ROWS, rows_, cols_)
#include "schema.def"
    case K3_TENSORS:
        break;
    }
#undef SET
    t->bytes = t->rows * t->cols * k3_dtype_size[t->dtype];
    return true;
}

void k3_schema_part(const k3_config *c, k3_part_id part, k3_tensor *t)
{
    *t = (k3_tensor){.name = part_names[part], .dtype = K3_U8, .use = K3_USE_MATRIX, .place = K3_IN_MOE, .rank = 2, .group = 1};
    switch (part) {
#define EXPERT(id_, name_, rows_, cols_)                                                 \
    case K3_P_##id_:                                                                     \
        t->rows = (rows_), t->cols = (cols_);                                            \
        break;
#include "schema.def"
    case K3_PARTS:
        break;
    }
    t->bytes = t->rows * t->cols;
}

uint64_t k3_expert_bytes(const k3_config *c)
{
    uint64_t sum = 0;
    for (int p = 0; p < K3_PARTS; p++) {
        k3_tensor t;
        k3_schema_part(c, (k3_part_id)p, &t);
        sum += t.bytes;
    }
    return sum;
}

char *k3_tensor_name(char *buf, int layer, k3_tensor_id id)
{
    if (layer < 0)
        snprintf(buf, K3_NAME_MAX, K3_PREFIX "%s", names[id]);
    else
        snprintf(buf, K3_NAME_MAX, K3_PREFIX "model.layers.%d.%s", layer, names[id]);
    return buf;
}

#define EXPERTS "block_sparse_moe.experts."

char *k3_part_name(char *buf, int layer, uint64_t expert, k3_part_id part)
{
    snprintf(buf, K3_NAME_MAX, K3_PREFIX "model.layers.%d." EXPERTS "%" PRIu64 ".%s", layer, expert, part_names[part]);
    return buf;
}

/* A plain decimal number without leading zeros, followed by a dot; NULL if it is none. */
static const char *number_dot(const char *s, uint64_t *out)
{
    uint64_t v = 0;
    const char *p = s;
    for (; *p >= '0' && *p <= '9' && p - s < 10; p++)
        v = v * 10 + (uint64_t)(*p - '0');
    if (p == s || *p != '.' || (*s == '0' && p - s > 1))
        return NULL;
    *out = v;
    return p + 1;
}

bool k3_name_ignored(const char *name)
{
    return strncmp(name, K3_PREFIX, strlen(K3_PREFIX)) != 0;
}

bool k3_name_matches(const char *pattern, const char *name)
{
    if (!strpbrk(pattern, "*?["))
        return strstr(name, pattern) != NULL;
    return !fnmatch(pattern, name, 0) || (!k3_name_ignored(name) && !fnmatch(pattern, name + strlen(K3_PREFIX), 0));
}

static bool parse_part(const char *s, k3_name *out)
{
    uint64_t expert;
    if (!(s = number_dot(s, &expert)))
        return false;
    for (int p = 0; p < K3_PARTS; p++)
        if (!strcmp(s, part_names[p])) {
            out->expert = (int64_t)expert;
            out->part = p;
            return true;
        }
    return false;
}

bool k3_name_parse(const char *name, k3_name *out)
{
    static const char layers[] = "model.layers.";
    *out = (k3_name){.layer = -1, .tensor = -1, .expert = -1, .part = -1};
    if (k3_name_ignored(name))
        return false;
    const char *s = name + strlen(K3_PREFIX);
    if (!strncmp(s, layers, strlen(layers))) {
        uint64_t layer;
        if (!(s = number_dot(s + strlen(layers), &layer)) || layer >= K3_MAX_LAYERS)
            return false;
        out->layer = (int)layer;
        if (!strncmp(s, EXPERTS, strlen(EXPERTS)))
            return parse_part(s + strlen(EXPERTS), out);
    }
    for (int id = 0; id < K3_TENSORS; id++) {
        bool global = places[id] == K3_IN_HEAD || places[id] == K3_IN_EMBED;
        if (global == (out->layer < 0) && !strcmp(s, names[id])) {
            out->tensor = id;
            return true;
        }
    }
    return false;
}
