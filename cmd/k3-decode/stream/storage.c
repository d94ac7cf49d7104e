/* SPDX-License-Identifier: Apache-2.0 */
/* Trunk file, shards and checksums. */
#include "storage.h"
#include "wide_xxh3.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int open_shard(struct storage *t, uint32_t shard, k3_direct **d, k3_err *err)
{
    int status = 0;
    pthread_mutex_lock(&t->lock);
    if (!t->shard[shard].path) {
        bool fallback;
        status = k3_direct_open(&t->shard[shard], k3_index_shard_path(t->ix, shard), !t->direct, &fallback, err);
        if (!status && fallback && !t->said_fallback) {
            t->said_fallback = true;
            k3_note("%s: no direct reads on this file system, using the page cache", k3_index_shard_path(t->ix, shard));
        }
    }
    *d = &t->shard[shard];
    pthread_mutex_unlock(&t->lock);
    return status;
}

static int read_extent(struct storage *t, k3_extent at, void *buf, const void **data, k3_err *err)
{
    k3_direct *d;
    int status = open_shard(t, at.shard, &d, err);
    return status ? status : k3_direct_read(d, buf, at.offset, at.bytes, data, err);
}

/* Where a piece is in the shards. */
static k3_extent piece_extent(const struct storage *t, const k3_piece *p)
{
    k3_tensor tensor;
    k3_extent at;
    k3_schema_tensor(t->c, p->layer, (k3_tensor_id)p->tensor, &tensor);
    k3_index_tensor(t->ix, p->layer, (k3_tensor_id)p->tensor, &at);
    at.offset += p->row0 * tensor.cols * k3_dtype_size[tensor.dtype];
    at.bytes = p->bytes;
    return at;
}

static bool is_vector(const struct storage *t, const k3_piece *p)
{
    k3_tensor tensor;
    return k3_schema_tensor(t->c, p->layer, (k3_tensor_id)p->tensor, &tensor) && tensor.use == K3_USE_VECTOR;
}

static int check_piece(const struct storage *t, const k3_piece *p, const void *data, k3_err *err)
{
    return k3_sums_tensor(t->sums, p->layer, (k3_tensor_id)p->tensor, p->row0, p->rows, data, err);
}

/* A tile of several vectors: each through the bounce buffer to its place. */
static int read_vectors(struct storage *t, const k3_tile *tile, uint8_t *buf, uint8_t *bounce, k3_err *err)
{
    for (uint32_t i = 0; i < tile->npieces; i++) {
        const k3_piece *p = &t->order->pieces[tile->first + i];
        k3_extent at = piece_extent(t, p);
        const void *data;
        if (p->tensor == K3_T_A_LOG)
            at.bytes = k3_index_stored_bytes(t->ix, p->layer, K3_T_A_LOG);
        int status = read_extent(t, at, bounce, &data, err);
        if (!status && p->tensor == K3_T_A_LOG)
            status = k3_a_log_check(t->ix, p->layer, data, at.bytes / sizeof(float), err);
        if (!status)
            status = check_piece(t, p, data, err);
        if (status)
            return status;
        memcpy(buf + p->offset, data, p->bytes);
    }
    return 0;
}

/* The number that a tile of this run's order has in the trunk file, which always holds all layers. */
static uint32_t file_tile(const struct storage *t, uint32_t tile)
{
    return tile < t->order->head ? tile : k3_trunk_tiles(t->trunk) - (t->order->ntiles - tile);
}

int storage_read_tile(struct storage *t, uint32_t tile, uint8_t *buf, uint8_t *bounce, const uint8_t **out, k3_err *err)
{
    const k3_tile *at = &t->order->tiles[tile];
    const k3_piece *p = &t->order->pieces[at->first];
    const void *data = buf;
    int status = t->trunk          ? k3_direct_read(&t->trunk_file, buf, k3_trunk_offset(t->trunk, file_tile(t, tile)), at->bytes, &data, err)
                 : is_vector(t, p) ? read_vectors(t, at, buf, bounce, err)
                                   : read_extent(t, piece_extent(t, p), buf, &data, err);
    *out = data;
    return status;
}

static int check_packed(const struct storage *t, uint32_t tile, const uint8_t *data, k3_err *err)
{
    uint32_t n = file_tile(t, tile);
    uint64_t sum = XXH3_64bits(data, t->order->tiles[tile].bytes), want = k3_trunk_sum(t->trunk, n);
    if (sum == want)
        return 0;
    return k3_fail_at(err, K3_EDATA, k3_trunk_path(t->trunk), NULL, (int64_t)k3_trunk_offset(t->trunk, n),
                      "tile %" PRIu32 " has checksum %016" PRIx64 ", not %016" PRIx64 "; pack again with k3-pack", n, sum, want);
}

int storage_check_tile(const struct storage *t, uint32_t tile, const uint8_t *data, k3_err *err)
{
    const k3_piece *p = &t->order->pieces[t->order->tiles[tile].first];
    return t->trunk ? check_packed(t, tile, data, err) : is_vector(t, p) ? 0 : check_piece(t, p, data, err);
}

int storage_read_expert(struct storage *t, int layer, uint16_t number, uint8_t *buf, const uint8_t *part[K3_PARTS], k3_err *err)
{
    k3_extent at[K3_PARTS];
    bool adjacent = k3_index_expert(t->ix, layer, number, at);
    k3_extent all = {at[0].shard, at[0].offset, k3_expert_bytes(t->c)};
    const void *data = NULL;
    int status = adjacent ? read_extent(t, all, buf, &data, err) : 0;
    for (int i = 0; i < K3_PARTS && !status; i++) {
        if (!adjacent) {
            status = read_extent(t, at[i], buf, &data, err);
            buf += k3_direct_room(at[i].bytes);
        }
        part[i] = data;
        data = (const uint8_t *)data + at[i].bytes;
    }
    return status;
}

int storage_check_expert(const struct storage *t, int layer, uint16_t number, const uint8_t *const part[K3_PARTS], k3_err *err)
{
    int status = 0;
    for (int i = 0; i < K3_PARTS && !status; i++)
        status = k3_sums_part(t->sums, layer, number, (k3_part_id)i, part[i], err);
    return status;
}

int storage_read_rows(struct storage *t, const uint32_t *ids, size_t n, uint16_t *rows, k3_err *err)
{
    uint64_t bytes = t->c->hidden * sizeof *rows;
    k3_extent at;
    k3_direct *d;
    k3_index_tensor(t->ix, -1, K3_T_EMBED, &at);
    int status = open_shard(t, at.shard, &d, err);
    for (size_t i = 0; i < n && !status; i++) {
        uint16_t *row = rows + i * t->c->hidden;
        status = k3_pread_full(d->plain_fd, d->path, row, bytes, at.offset + ids[i] * bytes, err);
        if (!status)
            status = k3_sums_tensor(t->sums, -1, K3_T_EMBED, ids[i], 1, row, err);
    }
    return status;
}

uint64_t storage_bounce_bytes(const struct storage *t)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < t->order->npieces; i++) {
        const k3_piece *p = &t->order->pieces[i];
        uint64_t n = p->tensor == K3_T_A_LOG ? k3_index_stored_bytes(t->ix, p->layer, K3_T_A_LOG) : p->bytes;
        if (is_vector(t, p) && n > most)
            most = n;
    }
    return k3_direct_room(most);
}

uint64_t storage_tile_room(const void *arg, uint32_t tile)
{
    const struct storage *t = arg;
    const k3_tile *at = &t->order->tiles[tile];
    /* Trunk tiles and bundles of vectors start aligned; pieces of a shard anywhere. */
    if (t->trunk || is_vector(t, &t->order->pieces[at->first]))
        return ((uint64_t)at->bytes + K3_DIRECT_ALIGN - 1) / K3_DIRECT_ALIGN * K3_DIRECT_ALIGN;
    return k3_direct_room(at->bytes);
}

uint64_t storage_expert_room(const k3_index *ix)
{
    const k3_config *c = k3_index_config(ix);
    k3_extent at[K3_PARTS];
    for (uint64_t l = c->first_moe; l < c->layers; l++)
        for (uint64_t e = 0; e < c->experts; e++)
            if (!k3_index_expert(ix, (int)l, e, at)) {
                uint64_t room = 0;
                for (int i = 0; i < K3_PARTS; i++)
                    room += k3_direct_room(at[i].bytes);
                return room;
            }
    return k3_direct_room(k3_expert_bytes(c));
}

uint64_t storage_expert_order(const void *arg, int layer, uint16_t number)
{
    const struct storage *t = arg;
    k3_extent at[K3_PARTS];
    k3_index_expert(t->ix, layer, number, at);
    return (uint64_t)at[0].shard << 48 | at[0].offset;
}

/* ---- opening and closing ---- */

static int open_trunk(struct storage *t, const char *path, k3_err *err)
{
    bool fallback = false;
    int status = k3_trunk_open(&t->trunk, path, t->ix, err);
    if (status)
        return status;
    status = k3_direct_open(&t->trunk_file, path, !t->direct, &fallback, err);
    if (!status && fallback)
        k3_note("%s: no direct reads on this file system, using the page cache", path);
    t->said_fallback = fallback; /* once is enough */
    return status;
}

int storage_open(struct storage *t, const k3_index *ix, const char *trunk_path, const char *sums_path, uint64_t layers,
                 uint64_t tile_bytes, bool direct, k3_err *err)
{
    *t = (struct storage){.ix = ix, .c = k3_index_config(ix), .direct = direct};
    pthread_mutex_init(&t->lock, NULL);
    if (!(t->shard = calloc(k3_index_shards(ix), sizeof *t->shard)))
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu32 " shards", k3_index_shards(ix));
    int status = trunk_path ? open_trunk(t, trunk_path, err) : 0;
    if (!status)
        status = k3_sums_open(&t->sums, ix, sums_path, err);
    return status ? status : k3_order_new(&t->order, t->c, 0, layers, true, t->trunk ? k3_trunk_tile_bytes(t->trunk) : tile_bytes, err);
}

void storage_close(struct storage *t)
{
    for (uint32_t i = 0; t->shard && i < k3_index_shards(t->ix); i++)
        k3_direct_close(&t->shard[i]);
    k3_direct_close(&t->trunk_file);
    k3_trunk_close(t->trunk);
    k3_sums_close(t->sums);
    k3_order_free(t->order);
    free(t->shard);
    if (t->ix)
        pthread_mutex_destroy(&t->lock);
    *t = (struct storage){0};
}
