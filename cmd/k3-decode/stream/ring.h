/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - the tiles of the reading order on their way through memory: which one is read next, into which buffer, which
 * one the forward pass gets next, and which stay for good.
 *
 * A state machine: it starts no thread, opens no file and knows no clock. It is told what happens (a pass begins, a tile
 * was read, checked, used) and answers what to do. Calls on one ring must not overlap; the caller has a lock.
 *
 * Reading runs ahead of computing through the fixed order of use and does not stop at a layer, a token or the head: the
 * cursor goes round as long as a buffer is free. A pinned tile is read by the same cursor, once, into memory of its own.
 *
 *   ring_pick -> READING -> ring_landed -> LANDED -> ring_pick_check -> CHECKING -> ring_finish -> READY -> ring_release
 *                   \___________________ ring_finish ____________________________________________/ or FAILED for good
 */
#ifndef RING_H
#define RING_H

#include "k3_spec.h"

enum tile_state { TILE_FREE, TILE_READING, TILE_LANDED, TILE_CHECKING, TILE_READY, TILE_FAILED };

/* A tile on its way: into a buffer of the ring, or into pinned memory. */
struct ring_entry {
    enum tile_state state;
    uint32_t tile;           /* of the order */
    int32_t buffer;          /* -1: pinned */
    uint8_t *to;             /* where it is read to */
    const uint8_t *data;     /* where its first byte is, once it is read */
};

struct pinned_tile {
    uint64_t at;             /* in the pinned memory */
    bool pinned;
    bool asked;              /* its one read has been started */
    const uint8_t *data;     /* NULL until the forward pass met it */
};

struct ring {
    const k3_order *order;
    struct pinned_tile *pin; /* [tiles] */
    bool *buffer_used;       /* [buffers] */
    struct ring_entry *entry; /* [capacity] circular, in order of use */
    uint32_t buffers, capacity, first, n;
    uint8_t *memory, *pin_memory;
    uint64_t buffer_bytes;   /* of one */
    uint32_t ahead_tile;     /* the next tile to start reading; ntiles: at the end of its pass */
    uint64_t ahead_pass;     /* of that pass; the first is 1 */
    uint64_t pass;           /* passes begun */
    bool head, more;         /* the pass at hand has a head; another follows */
    uint32_t tile, piece;    /* what the forward pass gets next; piece within the tile */
    uint64_t pinned_bytes;   /* weights in pinned tiles */
    uint64_t trunk_bytes, head_bytes; /* weights read and used */
};

/* Buffers >= 2. `entries`: reads and checks at once beside the tiles in buffers, so that pinned tiles find room too. */
int ring_init(struct ring *r, const k3_order *order, uint32_t buffers, uint32_t entries, k3_err *err);
void ring_free(struct ring *r);

/* Memory that a tile takes, alignment included. */
typedef uint64_t (*tile_room_fn)(const void *arg, uint32_t tile);
/* Which tiles stay: `routers_first`, those of routers; then all alike, spread evenly by bytes, so that disk and
 * arithmetic alternate finely. Returns the bytes of memory to give to ring_memory(), at most `budget`. */
uint64_t ring_choose_pins(struct ring *r, uint64_t budget, bool routers_first, tile_room_fn room, const void *arg);
/* Memory of the buffers, `buffer_bytes` each, and of the pinned tiles. */
void ring_memory(struct ring *r, uint8_t *memory, uint64_t buffer_bytes, uint8_t *pin_memory);
/* Every tile is pinned: after the first pass nothing is read. */
bool ring_all_pinned(const struct ring *r);

/* ---- events of the forward pass ---- */

/* A pass starts at the first tile. `head`: it goes on through the head; `more`: another follows, and reading may run
 * ahead into it. */
void ring_begin(struct ring *r, bool head, bool more);

enum ring_answer {
    RING_DATA,      /* here it is */
    RING_WAIT,      /* not read yet */
    RING_BROKEN,    /* its read or its check failed */
    RING_PAST_END,  /* the pass has no more */
    RING_DISORDER,  /* another tile came: a fault in this program */
};
/* The piece at hand and its weights. Asking twice gives the same. */
enum ring_answer ring_next(struct ring *r, const k3_piece **piece, const uint8_t **data);

enum ring_progress { RING_IN_TILE, RING_TILE_DONE, RING_LAYER_DONE };
/* The piece at hand is used. After its tile's last one the buffer is free. */
enum ring_progress ring_release(struct ring *r);
/* The piece at or after the tile at hand that has that row of a matrix; *data NULL unless it stays in memory. NULL if
 * the order has none. */
const k3_piece *ring_peek(const struct ring *r, int layer, int tensor, uint64_t row, const uint8_t **data);

/* ---- events of the readers ---- */

/* Whether a tile is to be read now, if there is a buffer for it: moves the cursor past what needs no read. */
bool ring_behind(struct ring *r);
/* The tile to read now, marked READING, or NULL. No more than `most` are on their way or in use. */
struct ring_entry *ring_pick(struct ring *r, uint32_t most);
/* It is in memory, and is to be checked by another thread. */
void ring_landed(struct ring_entry *e);
/* The landed tile that is needed first, marked CHECKING, or NULL. */
struct ring_entry *ring_pick_check(struct ring *r);
/* It may be used (`ok`), or never. */
void ring_finish(struct ring_entry *e, bool ok);

/* Weight bytes of tiles that were read, or are being read, and have not been used. */
uint64_t ring_unused(const struct ring *r);

/* The layer of a tile, with the head as layer number `head_layer`; -1 past the last tile. */
static inline int ring_layer(const struct ring *r, uint32_t tile, int head_layer)
{
    if (tile >= r->order->ntiles)
        return -1;
    int layer = r->order->tiles[tile].layer;
    return layer < 0 ? head_layer : layer;
}

#endif
