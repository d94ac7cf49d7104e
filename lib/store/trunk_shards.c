/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles from the shards, wherever their tensors lie. */
#define _GNU_SOURCE
#include "trunk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

int k3_shards_open(struct shards *s, const k3_index *ix, bool plain, k3_err *err)
{
    *s = (struct shards){.ix = ix, .plain = plain, .file = calloc(k3_index_shards(ix), sizeof *s->file)};
    pthread_mutex_init(&s->lock, NULL);
    if (!s->file)
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu32 " shards", k3_index_shards(ix));
    return 0;
}

void k3_shards_close(struct shards *s)
{
    for (uint32_t i = 0; s->file && i < k3_index_shards(s->ix); i++)
        k3_direct_close(&s->file[i]);
    k3_sums_close(s->sums);
    free(s->file);
    pthread_mutex_destroy(&s->lock);
}

int k3_shards_state(const k3_index *ix, uint64_t *state, k3_err *err)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < k3_index_shards(ix); i++) {
        struct stat st;
        const char *path = k3_index_shard_path(ix, i);
        if (stat(path, &st))
            return k3_fail_errno(err, path, "cannot stat");
        const uint64_t now[] = {sum, (uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec};
        sum = XXH3_64bits(now, sizeof now);
    }
    *state = sum;
    return 0;
}

static int shard(struct shards *s, uint32_t number, const k3_direct **d, k3_err *err)
{
    int status = 0;
    const char *path = k3_index_shard_path(s->ix, number);
    pthread_mutex_lock(&s->lock);
    if (!s->file[number].path) {
        bool fallback;
        status = k3_direct_open(&s->file[number], path, s->plain, &fallback, err);
        if (!status && fallback && !s->said_fallback) {
            s->said_fallback = true;
            k3_note("%s: no direct reads on this file system, using the page cache", path);
        }
    }
    *d = &s->file[number];
    pthread_mutex_unlock(&s->lock);
    return status;
}

/* Where the rows of a piece are. */
static k3_extent piece_extent(const struct shards *s, const k3_piece *p)
{
    k3_tensor t;
    k3_extent at = {0};
    k3_schema_tensor(k3_index_config(s->ix), p->layer, (k3_tensor_id)p->tensor, &t);
    k3_index_tensor(s->ix, p->layer, (k3_tensor_id)p->tensor, &at);
    at.offset += p->row0 * t.cols * k3_dtype_size[t.dtype];
    at.bytes = p->bytes;
    return at;
}

/* ---- holes ---------------------------------------------------------------------------- */

/* Bytes of the extent that are not holes, and in how many runs; all of it where
 * the file system does not tell. */
static uint64_t data_bytes(const k3_direct *d, k3_extent at, uint64_t *runs)
{
    uint64_t end = at.offset + at.bytes, data = 0, from = at.offset;
    *runs = 0;
    while (from < end) {
        off_t begin = lseek(d->plain_fd, (off_t)from, SEEK_DATA);
        if (begin < 0 && errno == ENXIO)
            break; /* a hole to the end of the file */
        off_t stop = begin < 0 ? -1 : lseek(d->plain_fd, begin, SEEK_HOLE);
        if (stop <= begin) {
            *runs = 1;
            return at.bytes;
        }
        if ((uint64_t)begin >= end)
            break;
        from = (uint64_t)stop < end ? (uint64_t)stop : end;
        data += from - (uint64_t)begin;
        ++*runs;
    }
    return data;
}

static bool is_hole(const k3_direct *d, k3_extent at)
{
    struct stat st;
    off_t data = lseek(d->plain_fd, (off_t)at.offset, SEEK_DATA);
    if (data >= 0)
        return (uint64_t)data >= at.offset + at.bytes;
    return errno == ENXIO && !fstat(d->plain_fd, &st) && at.offset + at.bytes <= (uint64_t)st.st_size;
}

int k3_shards_tile_space(struct shards *s, const k3_order *o, uint32_t tile, uint64_t *bytes, k3_err *err)
{
    const k3_tile *t = &o->tiles[tile];
    uint64_t space = 0, all = trunk_padded(t->bytes);
    for (uint32_t i = 0; i < t->npieces; i++) {
        k3_extent at = piece_extent(s, &o->pieces[t->first + i]);
        const k3_direct *d;
        uint64_t runs;
        int status = shard(s, at.shard, &d, err);
        if (status)
            return status;
        space += data_bytes(d, at, &runs) + runs * 2 * TRUNK_BLOCK; /* a run may begin and end inside a block */
    }
    *bytes = space < all ? space : all;
    return 0;
}

/* ---- reading --------------------------------------------------------------------------- */

int k3_tile_buf_new(struct tile_buf *b, const k3_index *ix, const k3_order *o, k3_err *err)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < o->ntiles; i++)
        for (uint32_t j = 0; j < o->tiles[i].npieces; j++) {
            const k3_piece *p = &o->pieces[o->tiles[i].first + j];
            uint64_t n = p->tensor == K3_T_A_LOG ? k3_index_stored_bytes(ix, p->layer, K3_T_A_LOG) : p->bytes;
            if ((o->tiles[i].npieces > 1 || p->tensor == K3_T_A_LOG) && n > most)
                most = n;
        }
    *b = (struct tile_buf){.tile_room = k3_direct_room(o->largest), .bounce_room = k3_direct_room(most)};
    b->tile = k3_big_alloc(b->tile_room, true);
    b->bounce = k3_big_alloc(b->bounce_room, false);
    if (!b->tile || !b->bounce) {
        k3_tile_buf_free(b);
        return k3_fail(err, K3_ESYS, "out of memory for a tile of %" PRIu32 " bytes", o->largest);
    }
    return 0;
}

void k3_tile_buf_free(struct tile_buf *b)
{
    k3_big_free(b->tile, b->tile_room);
    k3_big_free(b->bounce, b->bounce_room);
    *b = (struct tile_buf){0};
}

/* A piece into `buf`, or zeros without reading where the shard has a hole. */
static int read_piece(struct shards *s, const k3_piece *p, uint8_t *buf, const void **data, uint64_t *read, k3_err *err)
{
    k3_extent at = piece_extent(s, p);
    const k3_direct *d;
    if (p->tensor == K3_T_A_LOG)
        at.bytes = k3_index_stored_bytes(s->ix, p->layer, K3_T_A_LOG);
    int status = shard(s, at.shard, &d, err);
    if (status)
        return status;
    *data = buf;
    if (is_hole(d, at)) {
        memset(buf, 0, at.bytes);
        return 0;
    }
    *read += at.bytes;
    status = k3_direct_read(d, buf, at.offset, at.bytes, data, err);
    if (!status && p->tensor == K3_T_A_LOG)
        status = k3_a_log_check(s->ix, p->layer, *data, at.bytes / sizeof(float), err);
    return status;
}

int k3_shards_read_tile(struct shards *s, const k3_order *o, uint32_t tile, struct tile_buf *b, uint64_t *read, k3_err *err)
{
    const k3_tile *t = &o->tiles[tile];
    const k3_piece *p = &o->pieces[t->first];
    const void *data;
    *read = 0;
    if (t->npieces == 1 && p->tensor != K3_T_A_LOG) {
        int status = read_piece(s, p, b->tile, &data, read, err);
        if (status)
            return status;
        if (data != b->tile)
            memmove(b->tile, data, t->bytes);
        memset(b->tile + t->bytes, 0, trunk_padded(t->bytes) - t->bytes);
        return 0;
    }
    memset(b->tile, 0, trunk_padded(t->bytes));
    for (uint32_t i = 0; i < t->npieces; i++) {
        int status = read_piece(s, &p[i], b->bounce, &data, read, err);
        if (status)
            return status;
        memcpy(b->tile + p[i].offset, data, p[i].bytes);
    }
    return 0;
}

int k3_shards_check_tile(struct shards *s, const k3_order *o, uint32_t tile, const uint8_t *data, k3_err *err)
{
    const k3_tile *t = &o->tiles[tile];
    int status = 0;
    for (uint32_t i = 0; s->sums && i < t->npieces && !status; i++) {
        const k3_piece *p = &o->pieces[t->first + i];
        status = k3_sums_tensor(s->sums, p->layer, (k3_tensor_id)p->tensor, p->row0, p->rows, data + p->offset, err);
    }
    return status;
}
