/* SPDX-License-Identifier: Apache-2.0 */
/* k3.trunk: its layout, opening it, what is in it. */
#include "trunk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

uint64_t k3_trunk_head_sum(const union trunk_head_block *b)
{
    return XXH3_64bits(b, sizeof *b - 8);
}

uint64_t k3_trunk_order_digest(const k3_order *o)
{
    XXH3_state_t *x = XXH3_createState();
    char name[K3_NAME_MAX];
    const k3_piece *last = NULL;
    if (!x)
        return 0;
    XXH3_64bits_reset(x);
    for (uint32_t i = 0; i < o->npieces; i++) {
        const k3_piece *p = &o->pieces[i];
        const uint32_t place[] = {p->row0, p->rows, p->offset, p->bytes};
        if (!last || last->layer != p->layer || last->tensor != p->tensor)
            k3_tensor_name(name, p->layer, (k3_tensor_id)p->tensor);
        XXH3_64bits_update(x, name, strlen(name) + 1);
        XXH3_64bits_update(x, place, sizeof place);
        last = p;
    }
    uint64_t sum = XXH3_64bits_digest(x);
    XXH3_freeState(x);
    return sum;
}

/* Bytes from the table's begin to the first tile. */
static uint64_t table_room(uint64_t tiles)
{
    uint64_t end = TRUNK_BLOCK + tiles * sizeof(struct trunk_entry);
    return (end + TRUNK_DATA - 1) / TRUNK_DATA * TRUNK_DATA - TRUNK_BLOCK;
}

int k3_trunk_lay_out(const k3_index *ix, const k3_order *o, uint64_t tile_bytes, struct trunk_head *head,
                  struct trunk_entry **table, k3_err *err)
{
    const k3_config *c = k3_index_config(ix);
    uint64_t table_bytes = table_room(o->ntiles);
    struct trunk_entry *e = calloc(1, table_bytes);
    uint64_t digest = k3_trunk_order_digest(o), at = TRUNK_BLOCK + table_bytes;
    if (!e || !digest) {
        free(e);
        return k3_fail(err, K3_ESYS, "out of memory for a table of %" PRIu32 " tiles", o->ntiles);
    }
    *head = (struct trunk_head){
        .magic = TRUNK_PART_MAGIC, .version = TRUNK_VERSION, .head_bytes = TRUNK_BLOCK,
        .source = k3_index_fingerprint(ix), .order = digest, .tile_bytes = tile_bytes,
        .tiles = o->ntiles, .head_tile = o->head, .pieces = o->npieces,
        .trunk_bytes = o->trunk_bytes, .head_weights = o->head_bytes,
        .layers = c->layers, .hidden = c->hidden, .vocab = c->vocab,
        .table_offset = TRUNK_BLOCK, .table_bytes = table_bytes, .data_offset = at};
    for (uint32_t i = 0; i < o->ntiles; i++) {
        const k3_piece *p = &o->pieces[o->tiles[i].first];
        e[i] = (struct trunk_entry){.offset = at, .bytes = o->tiles[i].bytes, .file_bytes = o->tiles[i].bytes,
                                    .row0 = p->row0, .layer = p->layer, .tensor = p->tensor};
        at += trunk_padded(e[i].bytes);
    }
    head->file_bytes = at + sizeof(struct trunk_end);
    *table = e;
    return 0;
}

/* ---- opening --------------------------------------------------------------------- */

static int damaged(const k3_trunk *t, uint64_t at, const char *what, k3_err *err)
{
    return k3_fail_at(err, K3_EDATA, t->path, NULL, (int64_t)at, "%s; pack it again with k3-pack", what);
}

/* Where a file of that size was cut. */
static int cut(const k3_trunk *t, uint64_t size, k3_err *err)
{
    const struct trunk_head *h = &t->head;
    char where[64] = "in its end mark";
    if (size > h->file_bytes)
        snprintf(where, sizeof where, "with %" PRIu64 " bytes too many", size - h->file_bytes);
    else if (size < h->data_offset)
        snprintf(where, sizeof where, "in its table of tiles");
    else if (size < h->file_bytes - sizeof(struct trunk_end))
        snprintf(where, sizeof where, "among its tiles");
    return k3_fail_at(err, K3_EDATA, t->path, NULL, -1,
                      "ends %s: %" PRIu64 " bytes, its header says %" PRIu64 "; pack it again with k3-pack", where, size,
                      h->file_bytes);
}

static int read_head(k3_trunk *t, uint64_t size, k3_err *err)
{
    union trunk_head_block b;
    uint64_t got = size < sizeof b ? size : sizeof b;
    memset(&b, 0, sizeof b);
    int status = k3_pread_full(t->fd, t->path, &b, got, 0, err);
    if (status)
        return status;
    if (got >= 8 && !memcmp(b.head.magic, TRUNK_PART_MAGIC, 8))
        return k3_fail_at(err, K3_EDATA, t->path, NULL, -1, "an unfinished pack; run k3-pack again to finish it");
    if (got < 8 || memcmp(b.head.magic, TRUNK_MAGIC, 8))
        return k3_fail_at(err, K3_EDATA, t->path, NULL, -1, "not a packed trunk: it does not begin with K3TRUNK");
    if (got < sizeof b)
        return k3_fail_at(err, K3_EDATA, t->path, NULL, -1,
                          "ends in its header: %" PRIu64 " of %zu bytes; pack it again with k3-pack", size, sizeof b);
    if (b.head.version != TRUNK_VERSION)
        return k3_fail_at(err, K3_EDATA, t->path, NULL, 8,
                          "trunk format %" PRIu32 ", this program reads %d; pack it again with k3-pack", b.head.version,
                          TRUNK_VERSION);
    if (b.word[TRUNK_BLOCK / 8 - 1] != k3_trunk_head_sum(&b))
        return damaged(t, 0, "the header's checksum does not match", err);
    t->head = b.head;
    /* From here on the fields are what the packer wrote; the sizes that follow are not trusted further than the file's. */
    const struct trunk_head *h = &t->head;
    if (h->head_bytes != TRUNK_BLOCK || h->table_offset != TRUNK_BLOCK || !h->tiles || h->tiles > UINT32_MAX ||
        h->table_bytes != table_room(h->tiles) || h->data_offset != TRUNK_BLOCK + h->table_bytes ||
        h->file_bytes < h->data_offset + sizeof(struct trunk_end))
        return damaged(t, 0, "the header's sizes do not fit together", err);
    return size == h->file_bytes ? 0 : cut(t, size, err);
}

/* Tiles follow each other without a gap, so the offsets follow from the sizes. */
static int check_entries(const k3_trunk *t, k3_err *err)
{
    uint64_t at = t->head.data_offset;
    for (uint64_t i = 0; i < t->head.tiles; i++) {
        const struct trunk_entry *e = &t->table[i];
        if (e->offset != at || !e->bytes || e->file_bytes != e->bytes || e->stored != STORED_PLAIN || e->layer < -1 ||
            e->tensor >= K3_TENSORS)
            return damaged(t, t->head.table_offset + i * sizeof *e, "an entry of the table is not possible", err);
        at += trunk_padded(e->bytes);
    }
    if (at + sizeof(struct trunk_end) != t->head.file_bytes)
        return damaged(t, t->head.table_offset, "the table's tiles do not fill the file", err);
    return 0;
}

static int read_table(k3_trunk *t, k3_err *err)
{
    const struct trunk_head *h = &t->head;
    struct trunk_end end, want = {.magic = TRUNK_END, .file_bytes = h->file_bytes};
    union trunk_head_block b;
    t->table = malloc(h->table_bytes);
    if (!t->table)
        return k3_fail(err, K3_ESYS, "%s: out of memory for a table of %" PRIu64 " bytes", t->path, h->table_bytes);
    int status = k3_pread_full(t->fd, t->path, t->table, h->table_bytes, h->table_offset, err);
    if (status)
        return status;
    if (XXH3_64bits(t->table, h->table_bytes) != h->table_sum)
        return damaged(t, h->table_offset, "the checksum of the table of tiles does not match", err);
    memset(&b, 0, sizeof b);
    b.head = *h;
    want.head_sum = k3_trunk_head_sum(&b);
    status = k3_pread_full(t->fd, t->path, &end, sizeof end, h->file_bytes - sizeof end, err);
    if (status)
        return status;
    if (memcmp(&end, &want, sizeof end))
        return damaged(t, h->file_bytes - sizeof end, "the end mark is missing", err);
    return check_entries(t, err);
}

/* The file holds exactly the tiles that this program would ask for. */
static int check_model(const k3_trunk *t, const k3_index *ix, k3_err *err)
{
    char has[K3_FINGERPRINT_TEXT], wants[K3_FINGERPRINT_TEXT];
    const k3_config *c = k3_index_config(ix);
    k3_order *o;
    if (!k3_fingerprint_equal(t->head.source, k3_index_fingerprint(ix)))
        return k3_fail_at(err, K3_EDATA, t->path, NULL, -1,
                          "packed from another checkpoint: fingerprint %s, %s has %s; pack this one with k3-pack",
                          k3_fingerprint_text(has, t->head.source), k3_index_dir(ix),
                          k3_fingerprint_text(wants, k3_index_fingerprint(ix)));
    int status = k3_index_check_weights(ix, err);
    if (status)
        return status;
    if (t->head.tile_bytes < K3_PACK_TILE_MIN || t->head.tile_bytes > K3_PACK_TILE_MAX)
        return damaged(t, 0, "the header's tile size is not possible", err);
    status = k3_order_new(&o, c, 0, c->layers, true, t->head.tile_bytes, err);
    if (status)
        return status;
    bool same = o->ntiles == t->head.tiles && k3_trunk_order_digest(o) == t->head.order;
    for (uint32_t i = 0; same && i < o->ntiles; i++)
        same = o->tiles[i].bytes == t->table[i].bytes;
    k3_order_free(o);
    return same ? 0 : damaged(t, 0, "packed in another reading order than this program's", err);
}

int k3_trunk_open(k3_trunk **out, const char *path, const k3_index *ix, k3_err *err)
{
    struct stat st;
    int status = 0;
    *out = NULL;
    k3_trunk *t = calloc(1, sizeof *t);
    if (!t || (t->fd = -1, !(t->path = strdup(path)))) {
        free(t);
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    }
    t->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (t->fd < 0 || fstat(t->fd, &st))
        status = k3_fail_errno(err, path, "cannot open the packed trunk");
    else if (!S_ISREG(st.st_mode))
        status = k3_fail(err, K3_ESYS, "%s: not a regular file", path);
    if (!status && !(status = read_head(t, (uint64_t)st.st_size, err)) && !(status = read_table(t, err)) && ix)
        status = check_model(t, ix, err);
    if (status)
        k3_trunk_close(t);
    else
        *out = t;
    return status;
}

void k3_trunk_close(k3_trunk *t)
{
    if (!t)
        return;
    if (t->fd >= 0)
        close(t->fd);
    free(t->table);
    free(t->path);
    free(t);
}

/* ---- what is in it ------------------------------------------------------------------ */

const char *k3_trunk_path(const k3_trunk *t)
{
    return t->path;
}

uint64_t k3_trunk_tile_bytes(const k3_trunk *t)
{
    return t->head.tile_bytes;
}

uint32_t k3_trunk_tiles(const k3_trunk *t)
{
    return (uint32_t)t->head.tiles;
}

uint64_t k3_trunk_offset(const k3_trunk *t, uint32_t tile)
{
    return t->table[tile].offset;
}

uint64_t k3_trunk_sum(const k3_trunk *t, uint32_t tile)
{
    return t->table[tile].sum;
}

uint32_t k3_trunk_bytes(const k3_trunk *t, uint32_t tile)
{
    return t->table[tile].bytes;
}

char *k3_trunk_place(const k3_trunk *t, uint32_t tile, char buf[K3_TRUNK_PLACE])
{
    const struct trunk_entry *e = &t->table[tile];
    char name[K3_NAME_MAX];
    snprintf(buf, K3_TRUNK_PLACE, "tile %" PRIu32 " (%s from row %" PRIu32 ")", tile,
             k3_tensor_name(name, e->layer, (k3_tensor_id)e->tensor), e->row0);
    return buf;
}

void k3_trunk_describe(const k3_trunk *t, k3_trunk_facts *f)
{
    const struct trunk_head *h = &t->head;
    struct stat st;
    *f = (k3_trunk_facts){
        .version = h->version, .source = h->source, .layers = h->layers, .hidden = h->hidden, .vocab = h->vocab,
        .tile_bytes = h->tile_bytes, .tiles = h->tiles, .pieces = h->pieces, .head_tile = h->head_tile,
        .trunk_bytes = h->trunk_bytes, .head_bytes = h->head_weights, .file_bytes = h->file_bytes};
    f->disk_bytes = fstat(t->fd, &st) ? h->file_bytes : (uint64_t)st.st_blocks * 512;
}
