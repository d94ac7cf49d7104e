/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors a shard holds, in which order, and its header. */
#include "mkckpt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- tensors of a shard ------------------------------------------------------ */

static tensor *add(shard *s, const char *name, k3_dtype dtype, int rank, const uint64_t *shape)
{
    if (s->n == s->cap) {
        size_t cap = s->cap ? s->cap * 2 : 64;
        tensor *grown = realloc(s->t, cap * sizeof *grown);
        if (!grown)
            return NULL;
        s->t = grown;
        s->cap = cap;
    }
    tensor *t = &s->t[s->n];
    *t = (tensor){.name = strdup(name), .dtype = dtype, .rank = rank, .bytes = k3_dtype_size[dtype]};
    if (!t->name)
        return NULL;
    for (int i = 0; i < rank; i++)
        t->bytes *= t->shape[i] = shape[i];
    t->live = t->bytes;
    s->n++;
    return t;
}

/* The release keeps A_log as one value a channel of a head; only the heads count. */
static uint64_t a_log_length(const k3_config *c)
{
    return c->kda_head_dim > c->kda_heads ? c->kda_head_dim : c->kda_heads;
}

static tensor *add_known(maker *m, shard *s, const char *name, const k3_tensor *k, int id)
{
    uint64_t shape[3] = {k->rows, k->cols, k->cols};
    if (k->rank == 1)
        shape[0] = id == K3_T_A_LOG ? a_log_length(&m->c) : k->cols;
    else if (k->rank == 3)
        shape[1] = 1;
    tensor *t = add(s, name, k->dtype, k->rank, shape);
    if (t) {
        t->seed = XXH3_64bits_withSeed(name, strlen(name), m->seed);
        if (id == K3_T_A_LOG)
            t->live = m->c.kda_heads * sizeof(float);
        choose_data(m, k, id, t);
    }
    return t;
}

/* Shuffled, half of a layer's tensors move on to the next shard. */
static bool moves(const maker *m, const char *name)
{
    return m->shuffled && (XXH3_64bits_withSeed(name, strlen(name), m->seed + 1) & 1);
}

/* The tensors of a layer that do, or do not, move on; layer -1: embedding and head. */
static bool add_layer(maker *m, shard *s, int layer, bool moved)
{
    char name[K3_NAME_MAX];
    k3_tensor k;
    for (int id = 0; id < K3_TENSORS; id++)
        if (k3_schema_tensor(&m->c, layer, (k3_tensor_id)id, &k)) {
            k3_tensor_name(name, layer, (k3_tensor_id)id);
            if ((layer >= 0 && moves(m, name)) == moved && !add_known(m, s, name, &k, id))
                return false;
        }
    if (layer < 0 || !k3_is_moe(&m->c, (uint64_t)layer))
        return true;
    for (uint64_t e = 0; e < m->c.experts; e++)
        for (int p = 0; p < K3_PARTS; p++) {
            k3_part_name(name, layer, e, (k3_part_id)p);
            k3_schema_part(&m->c, (k3_part_id)p, &k);
            if (moves(m, name) == moved && !add_known(m, s, name, &k, -1))
                return false;
        }
    return true;
}

/* ---- the parts a text engine ignores ------------------------------------------- */

static uint64_t vision(const maker *m, const char *field, uint64_t fallback)
{
    const json_t *v = json_object_get(m->vision, field);
    return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : fallback;
}

static bool add_plain(shard *s, const char *name, int rank, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    const uint64_t shape[4] = {a, b, c, d};
    return add(s, name, K3_BF16, rank, shape) != NULL;
}

static bool add_projector(const maker *m, shard *s)
{
    const json_t *kernel = json_object_get(m->vision, "merge_kernel_size");
    uint64_t merged = vision(m, "vt_hidden_size", 8);
    for (size_t i = 0; i < json_array_size(kernel); i++)
        merged *= (uint64_t)json_integer_value(json_array_get(kernel, i));
    return add_plain(s, "mm_projector.post_norm.weight", 1, m->c.hidden, 0, 0, 0) &&
           add_plain(s, "mm_projector.proj.0.weight", 2, merged, merged, 0, 0) &&
           add_plain(s, "mm_projector.proj.2.weight", 2, m->c.hidden, merged, 0, 0);
}

static bool add_vision(const maker *m, shard *s)
{
    uint64_t wide = vision(m, "vt_hidden_size", 8), qkv = vision(m, "qkv_hidden_size", 8);
    uint64_t inter = vision(m, "vt_intermediate_size", 16), patch = vision(m, "patch_size", 14);
    uint64_t high = vision(m, "init_pos_emb_height", 4), broad = vision(m, "init_pos_emb_width", 4);
    const struct {
        const char *name;
        int rank;
        uint64_t rows, cols;
    } block[] = {{"mlp.fc0", 2, inter, wide}, {"mlp.fc1", 2, wide, inter}, {"norm0", 1, wide, 0},
                 {"norm1", 1, wide, 0},       {"wo", 2, wide, qkv},        {"wqkv", 2, 3 * qkv, wide}};
    char name[96];
    for (uint64_t b = 0; b < vision(m, "vt_num_hidden_layers", 1); b++)
        for (size_t i = 0; i < sizeof block / sizeof *block; i++) {
            snprintf(name, sizeof name, "vision_tower.encoder.blocks.%" PRIu64 ".%s.weight", b, block[i].name);
            if (!add_plain(s, name, block[i].rank, block[i].rows, block[i].cols, 0, 0))
                return false;
        }
    return add_plain(s, "vision_tower.encoder.final_layernorm.weight", 1, wide, 0, 0, 0) &&
           add_plain(s, "vision_tower.patch_embed.pos_emb.weight", 3, high, broad, wide, 0) &&
           add_plain(s, "vision_tower.patch_embed.proj.weight", 4, wide, 3, patch, patch);
}

/* ---- order -------------------------------------------------------------------------- */

/* As in the release: F32, then BF16, then U8, by name within each. */
static int released_order(const void *a, const void *b)
{
    static const int rank[K3_DTYPES] = {[K3_F32] = 0, [K3_BF16] = 1, [K3_U8] = 2};
    const tensor *x = a, *y = b;
    return x->dtype != y->dtype ? rank[x->dtype] - rank[y->dtype] : strcmp(x->name, y->name);
}

static void shuffle(tensor *t, size_t n, uint64_t seed)
{
    for (size_t i = n; i > 1; i--) {
        size_t j = mix(seed + i) % i;
        tensor swap = t[i - 1];
        t[i - 1] = t[j];
        t[j] = swap;
    }
}

/* The header's line for one tensor; returns its length. */
static size_t header_line(char *buf, size_t cap, const tensor *t)
{
    size_t n = (size_t)snprintf(buf, cap, "\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name, k3_dtype_name[t->dtype]);
    for (int i = 0; i < t->rank; i++)
        n += (size_t)snprintf(buf + n, cap - n, i ? ",%" PRIu64 : "%" PRIu64, t->shape[i]);
    n += (size_t)snprintf(buf + n, cap - n, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->begin, t->begin + t->bytes);
    return n;
}

static const char metadata[] = "\"__metadata__\":{\"format\":\"pt\"}";

/* Bytes before the data: length word, compact JSON, spaces up to a multiple of 8;
 * shuffled, to an odd number, which the format allows. */
static uint64_t header_size(const maker *m, const shard *s)
{
    char line[512];
    uint64_t n = 2 + (m->shuffled ? sizeof metadata - 1 + (s->n > 0) : 0);
    for (size_t i = 0; i < s->n; i++)
        n += header_line(line, sizeof line, &s->t[i]) + (i > 0);
    return 8 + (m->shuffled ? n | 1 : (n + 7) / 8 * 8);
}

static bool add_tensors(maker *m, shard *s, size_t i)
{
    size_t layers = m->c.layers;
    if (i > layers)
        return i == layers + 1 ? add_projector(m, s) : add_vision(m, s);
    if (!add_layer(m, s, i < layers ? (int)i : -1, false))
        return false;
    return !m->shuffled || !i || add_layer(m, s, (int)i - 1, true);
}

int plan_shard(maker *m, size_t i, k3_err *err)
{
    shard *s = &m->shards[i];
    if (!add_tensors(m, s, i))
        return k3_fail(err, K3_ESYS, "%s: out of memory for the tensor list", s->path);
    if (m->shuffled)
        shuffle(s->t, s->n, mix(m->seed + i));
    else
        qsort(s->t, s->n, sizeof *s->t, released_order);
    uint64_t at = 0;
    for (size_t k = 0; k < s->n; k++) {
        s->t[k].begin = at;
        at += s->t[k].bytes;
    }
    s->header = header_size(m, s);
    s->size = s->header + at;
    return 0;
}

/* Shuffled headers list the tensors backwards: their order need not be that of the data. */
static void header_text(const maker *m, const shard *s, char *buf)
{
    size_t n = 8, cap = s->header + 512;
    buf[n++] = '{';
    if (m->shuffled)
        n += (size_t)snprintf(buf + n, cap - n, "%s%s", metadata, s->n ? "," : "");
    for (size_t i = 0; i < s->n; i++) {
        if (i)
            buf[n++] = ',';
        n += header_line(buf + n, cap - n, &s->t[m->shuffled ? s->n - 1 - i : i]);
    }
    buf[n++] = '}';
    memset(buf + n, ' ', s->header - n);
    for (int i = 0; i < 8; i++)
        buf[i] = (char)((s->header - 8) >> 8 * i);
}

int write_header(const maker *m, const shard *s, k3_err *err)
{
    int status = 0, fd = -1;
    char *buf = malloc(s->header + 512);
    if (!buf)
        return k3_fail(err, K3_ESYS, "%s: out of memory for the header", s->path);
    header_text(m, s, buf);
    errno = 0;
    if ((fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) < 0)
        status = k3_fail_errno(err, s->path, "cannot create");
    else if (pwrite(fd, buf, s->header, 0) != (ssize_t)s->header || ftruncate(fd, (off_t)s->size))
        status = k3_fail_errno(err, s->path, "cannot write the header");
    if (fd >= 0 && close(fd) && !status)
        status = k3_fail_errno(err, s->path, "cannot write the header");
    free(buf);
    return status;
}
