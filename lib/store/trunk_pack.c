/* SPDX-License-Identifier: Apache-2.0 */
/* Packing: every tile from the shards into PATH.part, then into place. */
#include "trunk.h"
#include "wide_xxh3.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

struct packer {
    const k3_index *ix;
    k3_order *order;
    struct shards shards;
    struct part part;
    k3_direct again;      /* the part itself, to compare what an earlier run wrote */
    struct tile_buf *buf; /* one a worker */
    int nbuf;
};

/* ---- one tile --------------------------------------------------------------------- */

/* Whether the tile is on record and its bytes, and the zeros after them, are those. *holes: of its bytes those in
 * blocks of zeros, which are not stored. */
static int believe(struct packer *p, int worker, uint32_t tile, bool *good, uint64_t *holes, k3_err *err)
{
    const struct trunk_entry *e = &p->part.table[tile];
    uint64_t padded = trunk_padded(e->bytes);
    const void *data;
    *good = false;
    if (e->stored == STORED_NOT)
        return 0;
    int status = k3_direct_read(&p->again, p->buf[worker].tile, e->offset, padded, &data, err);
    if (status)
        return status;
    const uint8_t *bytes = data;
    *good = XXH3_64bits(bytes, e->bytes) == e->sum && trunk_is_zero(bytes + e->bytes, padded - e->bytes);
    for (uint64_t at = 0; at < e->bytes && *good; at += TRUNK_BLOCK)
        if (trunk_is_zero(bytes + at, TRUNK_BLOCK))
            *holes += e->bytes - at < TRUNK_BLOCK ? e->bytes - at : TRUNK_BLOCK;
    return 0;
}

static int pack_tile(struct crew *c, void *arg, int worker, uint32_t tile, k3_pack_state *did, k3_err *err)
{
    struct packer *p = arg;
    uint32_t bytes = p->order->tiles[tile].bytes;
    const uint8_t *data = p->buf[worker].tile;
    bool good;
    int status = believe(p, worker, tile, &good, &did->holes, err);
    if (!status && good) {
        did->bytes_done = bytes;
        did->kept = 1;
    }
    if (status || good)
        return status;
    if ((status = k3_shards_read_tile(&p->shards, p->order, tile, &p->buf[worker], &did->read, err)))
        return status;
    sem_wait(&c->compute);
    status = k3_shards_check_tile(&p->shards, p->order, tile, data, err);
    uint64_t sum = XXH3_64bits(data, bytes);
    sem_post(&c->compute);
    if (status || (status = k3_part_write(&p->part, tile, data, &did->written, err)) ||
        (status = k3_part_record(&p->part, tile, sum, err)))
        return status;
    did->bytes_done = bytes;
    did->holes = bytes - did->written;
    return 0;
}

/* ---- before the work ------------------------------------------------------------------ */

/* Refuses to begin what cannot be finished: room for all data that is not there yet. */
static int check_space(struct packer *p, k3_err *err)
{
    const struct trunk_head *h = &p->part.block.head;
    uint64_t need = TRUNK_BLOCK + h->table_bytes + TRUNK_BLOCK;
    struct statvfs fs;
    char a[24], b[24];
    for (uint32_t i = 0; i < p->order->ntiles; i++) {
        uint64_t bytes = 0;
        int status = p->part.table[i].stored != STORED_NOT ? 0 : k3_shards_tile_space(&p->shards, p->order, i, &bytes, err);
        if (status)
            return status;
        need += bytes;
    }
    if (statvfs(p->part.path, &fs))
        return k3_fail_errno(err, p->part.path, "cannot ask for free space");
    uint64_t free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    if (free_bytes >= need || !fs.f_blocks) /* some keep no count: they have no blocks at all */
        return 0;
    return k3_fail(err, K3_ESYS, "%s: %s are needed, its file system has %s free; -o FILE packs to another place",
                   p->part.target, k3_fmt_bytes(a, need), k3_fmt_bytes(b, free_bytes));
}

static int open_all(struct packer *p, const char *path, const k3_pack_opts *o, uint64_t *state, k3_err *err)
{
    const k3_config *c = k3_index_config(p->ix);
    struct trunk_head head;
    struct trunk_entry *table;
    int status = k3_shards_state(p->ix, state, err);
    if (status || (status = k3_order_new(&p->order, c, 0, c->layers, true, o->tile_bytes, err)) ||
        (status = k3_shards_open(&p->shards, p->ix, o->plain, err)) ||
        (status = k3_sums_open(&p->shards.sums, p->ix, o->sums, err)) ||
        (status = k3_trunk_lay_out(p->ix, p->order, o->tile_bytes, &head, &table, err)))
        return status;
    head.state = *state;
    if ((status = k3_part_open(&p->part, path, &head, table, o->plain, err)))
        return status;
    if (p->part.resumed && (status = k3_direct_open(&p->again, p->part.path, o->plain, NULL, err)))
        return status;
    int workers = k3_crew_size(o, p->order->ntiles);
    if (!(p->buf = calloc((size_t)workers, sizeof *p->buf)))
        return k3_fail(err, K3_ESYS, "out of memory for %d workers", workers);
    for (; p->nbuf < workers; p->nbuf++)
        if ((status = k3_tile_buf_new(&p->buf[p->nbuf], p->ix, p->order, err)))
            return status;
    return check_space(p, err);
}

static void close_all(struct packer *p, bool keep)
{
    for (int i = 0; i < p->nbuf; i++)
        k3_tile_buf_free(&p->buf[i]);
    free(p->buf);
    k3_direct_close(&p->again);
    k3_part_close(&p->part, keep);
    if (p->shards.ix)
        k3_shards_close(&p->shards);
    k3_order_free(p->order);
}

/* ---- the whole ------------------------------------------------------------------------- */

/* The shards are still those that packing began with. */
static int check_unchanged(const struct packer *p, uint64_t before, k3_err *err)
{
    uint64_t now;
    int status = k3_shards_state(p->ix, &now, err);
    if (!status && now != before)
        status = k3_fail(err, K3_EDATA, "%s: a shard changed while it was packed; pack again when the shards are at rest",
                         k3_index_dir(p->ix));
    return status;
}

/* Adds to the message what the next run can go on with; true if that is anything. */
static bool say_kept(const struct packer *p, k3_err *err)
{
    uint64_t kept = 0;
    for (uint32_t i = 0; p->part.table && p->order && i < p->order->ntiles; i++)
        kept += p->part.table[i].stored != STORED_NOT;
    if (!kept || p->part.fd < 0)
        return false;
    size_t n = err ? strlen(err->text) : 0;
    if (err)
        snprintf(err->text + n, sizeof err->text - n, "; %" PRIu64 " of %" PRIu32 " tiles are kept in %.1000s for the next run",
                 kept, p->order->ntiles, p->part.path);
    return true;
}

int k3_trunk_pack(const k3_index *ix, const char *path, const k3_pack_opts *o, k3_pack_state *done, k3_err *err)
{
    struct packer p = {.ix = ix, .part = {.fd = -1, .direct_fd = -1}};
    struct crew crew = {.o = o, .tile = pack_tile, .arg = &p};
    uint64_t state = 0, bytes = 0;
    int status = open_all(&p, path, o, &state, err);
    for (uint32_t i = 0; !status && i < p.order->ntiles; i++)
        bytes += p.order->tiles[i].bytes;
    if (!status && p.part.resumed)
        k3_note("%s: going on with what an earlier run packed", p.part.path);
    if (!status)
        status = k3_crew_run(&crew, p.order->ntiles, bytes, err);
    if (!status && !(status = check_unchanged(&p, state, err)))
        status = k3_part_finish(&p.part, err);
    *done = crew.now;
    /* A part that was there before stays whatever happens; one of our own only if it is of use. */
    bool keep = !status || say_kept(&p, err) || !p.part.fresh;
    close_all(&p, keep);
    return status;
}
