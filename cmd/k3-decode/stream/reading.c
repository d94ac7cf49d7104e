/* One tile or one expert from storage, and its check; runs in readers and checkers without the lock. */
#include "streamer.h"
#include "wide_xxh3.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int reading_shard(struct streamer *s, uint32_t shard, k3_direct **d, k3_err *err)
{
    int status = 0;
    pthread_mutex_lock(&s->lock);
    if (!s->shard[shard].path) {
        bool fallback;
        status = k3_direct_open(&s->shard[shard], k3_index_shard_path(s->ix, shard), !s->plan.direct, &fallback, err);
        if (!status && fallback && !s->said_fallback) {
            s->said_fallback = true;
            k3_note("%s: no direct reads on this file system, using the page cache", k3_index_shard_path(s->ix, shard));
        }
    }
    *d = &s->shard[shard];
    pthread_mutex_unlock(&s->lock);
    return status;
}

static int read_extent(struct streamer *s, k3_extent at, void *buf, const void **data, k3_err *err)
{
    k3_direct *d;
    int status = reading_shard(s, at.shard, &d, err);
    return status ? status : k3_direct_read(d, buf, at.offset, at.bytes, data, err);
}

/* Where a piece is in the shards. */
static k3_extent piece_extent(const struct streamer *s, const k3_piece *p)
{
    k3_tensor t;
    k3_extent at;
    k3_schema_tensor(s->c, p->layer, (k3_tensor_id)p->tensor, &t);
    k3_index_tensor(s->ix, p->layer, (k3_tensor_id)p->tensor, &at);
    at.offset += p->row0 * t.cols * k3_dtype_size[t.dtype];
    at.bytes = p->bytes;
    return at;
}

static bool is_vector(const struct streamer *s, const k3_piece *p)
{
    k3_tensor t;
    return k3_schema_tensor(s->c, p->layer, (k3_tensor_id)p->tensor, &t) && t.use == K3_USE_VECTOR;
}

static int check_piece(const struct streamer *s, const k3_piece *p, const void *data, k3_err *err)
{
    return k3_sums_tensor(s->sums, p->layer, (k3_tensor_id)p->tensor, p->row0, p->rows, data, err);
}

/* A tile of several vectors: each through the bounce buffer to its place. */
static int read_vectors(struct streamer *s, const k3_tile *t, uint8_t *buf, uint8_t *bounce, k3_err *err)
{
    for (uint32_t i = 0; i < t->npieces; i++) {
        const k3_piece *p = &s->order->pieces[t->first + i];
        k3_extent at = piece_extent(s, p);
        const void *data;
        if (p->tensor == K3_T_A_LOG)
            at.bytes = k3_index_stored_bytes(s->ix, p->layer, K3_T_A_LOG);
        int status = read_extent(s, at, bounce, &data, err);
        if (!status && p->tensor == K3_T_A_LOG)
            status = k3_a_log_check(s->ix, p->layer, data, at.bytes / sizeof(float), err);
        if (!status)
            status = check_piece(s, p, data, err);
        if (status)
            return status;
        memcpy(buf + p->offset, data, p->bytes);
    }
    return 0;
}

/* The number that a tile of this run's order has in the trunk file, which always holds all layers. */
static uint32_t file_tile(const struct streamer *s, uint32_t tile)
{
    return tile < s->order->head ? tile : k3_trunk_tiles(s->trunk) - (s->order->ntiles - tile);
}

int read_tile(struct streamer *s, uint32_t tile, uint8_t *buf, uint8_t *bounce, const uint8_t **out, k3_err *err)
{
    const k3_tile *t = &s->order->tiles[tile];
    const k3_piece *p = &s->order->pieces[t->first];
    const void *data = buf;
    int status = s->trunk          ? k3_direct_read(&s->trunk_file, buf, k3_trunk_offset(s->trunk, file_tile(s, tile)), t->bytes, &data, err)
                 : is_vector(s, p) ? read_vectors(s, t, buf, bounce, err)
                                   : read_extent(s, piece_extent(s, p), buf, &data, err);
    *out = data;
    return status;
}

static int check_packed(const struct streamer *s, uint32_t tile, const uint8_t *data, k3_err *err)
{
    uint32_t n = file_tile(s, tile);
    uint64_t sum = XXH3_64bits(data, s->order->tiles[tile].bytes), want = k3_trunk_sum(s->trunk, n);
    if (sum == want)
        return 0;
    return k3_fail_at(err, K3_EDATA, k3_trunk_path(s->trunk), NULL, (int64_t)k3_trunk_offset(s->trunk, n),
                      "tile %" PRIu32 " has checksum %016" PRIx64 ", not %016" PRIx64 "; pack again with k3-pack", n, sum, want);
}

int check_tile(struct streamer *s, uint32_t tile, const uint8_t *data, k3_err *err)
{
    const k3_piece *p = &s->order->pieces[s->order->tiles[tile].first];
    return s->trunk ? check_packed(s, tile, data, err) : is_vector(s, p) ? 0 : check_piece(s, p, data, err);
}

int read_expert(struct streamer *s, int layer, uint16_t number, uint8_t *buf, const uint8_t *part[K3_PARTS], k3_err *err)
{
    k3_extent at[K3_PARTS];
    bool adjacent = k3_index_expert(s->ix, layer, number, at);
    k3_extent all = {at[0].shard, at[0].offset, k3_expert_bytes(s->c)};
    const void *data = NULL;
    int status = adjacent ? read_extent(s, all, buf, &data, err) : 0;
    for (int i = 0; i < K3_PARTS && !status; i++) {
        if (!adjacent) {
            status = read_extent(s, at[i], buf, &data, err);
            buf += k3_direct_room(at[i].bytes);
        }
        part[i] = data;
        data = (const uint8_t *)data + at[i].bytes;
    }
    return status;
}

int check_expert(struct streamer *s, int layer, uint16_t number, const uint8_t *const part[K3_PARTS], k3_err *err)
{
    int status = 0;
    for (int i = 0; i < K3_PARTS && !status; i++)
        status = k3_sums_part(s->sums, layer, number, (k3_part_id)i, part[i], err);
    return status;
}

uint64_t reading_bounce_bytes(const struct streamer *s)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->order->npieces; i++) {
        const k3_piece *p = &s->order->pieces[i];
        uint64_t n = p->tensor == K3_T_A_LOG ? k3_index_stored_bytes(s->ix, p->layer, K3_T_A_LOG) : p->bytes;
        if (is_vector(s, p) && n > most)
            most = n;
    }
    return k3_direct_room(most);
}

uint64_t reading_tile_room(const struct streamer *s, const k3_tile *t)
{
    /* Trunk tiles and bundles of vectors start aligned; pieces of a shard anywhere. */
    if (s->trunk || is_vector(s, &s->order->pieces[t->first]))
        return ((uint64_t)t->bytes + K3_DIRECT_ALIGN - 1) / K3_DIRECT_ALIGN * K3_DIRECT_ALIGN;
    return k3_direct_room(t->bytes);
}

uint64_t streamer_expert_room(const k3_index *ix)
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
