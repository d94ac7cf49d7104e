/* SPDX-License-Identifier: Apache-2.0 */
/* Checking a packed trunk: every byte that opening it does not look at. */
#include "trunk.h"
#include "wide_xxh3.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct checker {
    const k3_trunk *t;
    k3_direct file;
    uint8_t **buf; /* one a worker */
    uint64_t room;
    uint8_t *bad;  /* [tiles] */
};

/* The tile and the padding after it, which is zero. */
static int check_tile(struct crew *c, void *arg, int worker, uint32_t tile, k3_pack_state *did, k3_err *err)
{
    struct checker *k = arg;
    const struct trunk_entry *e = &k->t->table[tile];
    uint64_t padded = trunk_padded(e->bytes);
    const void *data;
    int status = k3_direct_read(&k->file, k->buf[worker], e->offset, padded, &data, err);
    if (status)
        return status;
    sem_wait(&c->compute);
    k->bad[tile] = XXH3_64bits(data, e->bytes) != e->sum || !trunk_is_zero((const uint8_t *)data + e->bytes, padded - e->bytes);
    sem_post(&c->compute);
    did->bytes_done = e->bytes;
    did->read = padded;
    return 0;
}

static int open_all(struct checker *k, const k3_pack_opts *o, int workers, k3_err *err)
{
    bool fallback;
    for (uint64_t i = 0; i < k->t->head.tiles; i++)
        k->room = k->t->table[i].bytes > k->room ? k->t->table[i].bytes : k->room;
    k->room = k3_direct_room(k->room);
    k->bad = calloc(k->t->head.tiles, 1);
    k->buf = calloc((size_t)workers, sizeof *k->buf);
    bool ok = k->bad && k->buf;
    for (int i = 0; ok && i < workers; i++)
        ok = (k->buf[i] = k3_big_alloc(k->room, true)) != NULL;
    if (!ok)
        return k3_fail(err, K3_ESYS, "out of memory for %d tiles of %" PRIu64 " bytes", workers, k->room);
    int status = k3_direct_open(&k->file, k->t->path, o->plain, &fallback, err);
    if (!status && fallback)
        k3_note("%s: no direct reads on this file system, using the page cache", k->t->path);
    return status;
}

/* Lists the bad tiles and names the first. */
static int verdict(const struct checker *k, uint32_t **damaged, size_t *n, k3_err *err)
{
    char place[K3_TRUNK_PLACE], more[48] = "";
    for (uint64_t i = 0; i < k->t->head.tiles; i++)
        *n += k->bad[i];
    if (!*n)
        return 0;
    if (!(*damaged = malloc(*n * sizeof **damaged)))
        return k3_fail(err, K3_ESYS, "out of memory for %zu damaged tiles", *n);
    size_t at = 0;
    for (uint32_t i = 0; i < k->t->head.tiles; i++)
        if (k->bad[i])
            (*damaged)[at++] = i;
    if (*n > 1)
        snprintf(more, sizeof more, " and %zu more are", *n - 1);
    return k3_fail_at(err, K3_EDATA, k->t->path, NULL, (int64_t)k->t->table[**damaged].offset,
                      "%s%s damaged; pack it again with k3-pack", k3_trunk_place(k->t, **damaged, place),
                      *n > 1 ? more : " is");
}

int k3_trunk_check(const k3_trunk *t, const k3_pack_opts *o, k3_pack_state *done, uint32_t **damaged, size_t *n, k3_err *err)
{
    struct checker k = {.t = t};
    struct crew crew = {.o = o, .tile = check_tile, .arg = &k};
    uint64_t bytes = 0;
    int workers = k3_crew_size(o, k3_trunk_tiles(t));
    *damaged = NULL;
    *n = 0;
    for (uint64_t i = 0; i < t->head.tiles; i++)
        bytes += t->table[i].bytes;
    int status = open_all(&k, o, workers, err);
    if (!status)
        status = k3_crew_run(&crew, k3_trunk_tiles(t), bytes, err);
    if (!status)
        status = verdict(&k, damaged, n, err);
    *done = crew.now;
    k3_direct_close(&k.file);
    for (int i = 0; k.buf && i < workers; i++)
        k3_big_free(k.buf[i], k.room);
    free(k.buf);
    free(k.bad);
    return status;
}
