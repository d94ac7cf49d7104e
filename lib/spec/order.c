/* SPDX-License-Identifier: Apache-2.0 */
/* The order of use, cut into tiles. */
#include "k3_spec.h"

#include <stdlib.h>

enum { PIECE_ALIGN = 64, TILE_LIMIT = 1 << 30 };

struct builder {
    k3_order *o;
    uint64_t limit;
    uint32_t tile_cap, piece_cap;
    bool open; /* the last tile may take another vector */
};

static bool k3_grow(void **array, uint32_t *cap, uint32_t used, size_t item)
{
    if (used < *cap)
        return true;
    uint32_t n = *cap ? *cap * 2 : 256;
    void *p = realloc(*array, n * item);
    if (!p)
        return false;
    *array = p;
    *cap = n;
    return true;
}

/* Appends a piece, to the open tile if `join` and it fits. */
static bool add(struct builder *b, k3_piece piece, bool join)
{
    k3_order *o = b->o;
    k3_tile *t = b->open ? &o->tiles[o->ntiles - 1] : NULL;
    uint64_t at = t ? ((uint64_t)t->bytes + PIECE_ALIGN - 1) / PIECE_ALIGN * PIECE_ALIGN : 0;
    if (!join || !t || t->layer != piece.layer || at + piece.bytes > b->limit) {
        if (!k3_grow((void **)&o->tiles, &b->tile_cap, o->ntiles, sizeof *o->tiles))
            return false;
        t = &o->tiles[o->ntiles++];
        *t = (k3_tile){.first = o->npieces, .layer = piece.layer};
        at = 0;
    }
    if (!k3_grow((void **)&o->pieces, &b->piece_cap, o->npieces, sizeof *o->pieces))
        return false;
    piece.offset = (uint32_t)at;
    o->pieces[o->npieces++] = piece;
    t->npieces++;
    t->bytes = (uint32_t)at + piece.bytes;
    if (t->bytes > o->largest)
        o->largest = t->bytes;
    b->open = join;
    return true;
}

uint64_t k3_tile_rows(const k3_tensor *t, uint64_t tile_bytes)
{
    uint64_t unit = t->use == K3_USE_VECTOR ? t->rows : t->group;
    uint64_t rows = tile_bytes / (t->cols * k3_dtype_size[t->dtype]) / unit * unit;
    return rows < unit ? unit : rows;
}

static bool add_tensor(struct builder *b, int layer, k3_tensor_id id, const k3_tensor *t)
{
    uint64_t row_bytes = t->cols * k3_dtype_size[t->dtype], step = k3_tile_rows(t, b->limit);
    if (step * row_bytes > TILE_LIMIT)
        return false;
    for (uint64_t r = 0; r < t->rows; r += step) {
        uint64_t rows = t->rows - r < step ? t->rows - r : step;
        k3_piece p = {.layer = (int16_t)layer, .tensor = (uint8_t)id, .row0 = (uint32_t)r, .rows = (uint32_t)rows,
                      .bytes = (uint32_t)(rows * row_bytes)};
        if (!add(b, p, t->use == K3_USE_VECTOR))
            return false;
    }
    return true;
}

static bool add_layer(struct builder *b, const k3_config *c, int layer, uint64_t *bytes)
{
    for (int id = 0; id < K3_TENSORS; id++) {
        k3_tensor t;
        if (!k3_schema_tensor(c, layer, (k3_tensor_id)id, &t) || t.use == K3_USE_ROWS)
            continue;
        *bytes += t.bytes;
        if (!add_tensor(b, layer, (k3_tensor_id)id, &t))
            return false;
    }
    return true;
}

int k3_order_new(k3_order **out, const k3_config *c, uint64_t first, uint64_t last, bool head, uint64_t tile_bytes,
                 k3_err *err)
{
    k3_order *o = calloc(1, sizeof *o);
    struct builder b = {.o = o, .limit = tile_bytes};
    bool ok = o != NULL;
    for (uint64_t l = first; ok && l < last; l++)
        ok = add_layer(&b, c, (int)l, &o->trunk_bytes);
    if (ok) {
        o->head = o->ntiles;
        ok = !head || add_layer(&b, c, -1, &o->head_bytes);
    }
    if (!ok) {
        k3_order_free(o);
        return k3_fail(err, K3_ESYS, "out of memory for the reading order (or a row group larger than 1 GiB)");
    }
    *out = o;
    return 0;
}

void k3_order_free(k3_order *o)
{
    if (!o)
        return;
    free(o->tiles);
    free(o->pieces);
    free(o);
}
