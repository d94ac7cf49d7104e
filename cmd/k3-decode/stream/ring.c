/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of tiles. */
#include "ring.h"

#include <inttypes.h>
#include <stdlib.h>

int ring_init(struct ring *r, const k3_order *order, uint32_t buffers, uint32_t entries, k3_err *err)
{
    *r = (struct ring){.order = order, .buffers = buffers, .capacity = buffers + entries};
    r->ahead_pass = 1; /* reading starts before the first pass is begun */
    r->pin = calloc(order->ntiles ? order->ntiles : 1, sizeof *r->pin);
    r->buffer_used = calloc(buffers, sizeof *r->buffer_used);
    r->entry = calloc(r->capacity, sizeof *r->entry);
    if (!r->pin || !r->buffer_used || !r->entry)
        return k3_fail(err, K3_ESYS, "out of memory for the tables of %" PRIu32 " tiles", order->ntiles);
    return 0;
}

void ring_free(struct ring *r)
{
    free(r->pin);
    free(r->buffer_used);
    free(r->entry);
    *r = (struct ring){0};
}

void ring_memory(struct ring *r, uint8_t *memory, uint64_t buffer_bytes, uint8_t *pin_memory)
{
    r->memory = memory;
    r->buffer_bytes = buffer_bytes;
    r->pin_memory = pin_memory;
}

/* Weight bytes of a tile, without padding. */
static uint64_t weight_bytes(const struct ring *r, uint32_t tile)
{
    const k3_tile *t = &r->order->tiles[tile];
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < t->npieces; i++)
        bytes += r->order->pieces[t->first + i].bytes;
    return bytes;
}

/* ---- pins ---- */

static bool of_router(const struct ring *r, uint32_t tile)
{
    return r->order->pieces[r->order->tiles[tile].first].tensor == K3_T_ROUTER;
}

static uint64_t pin(struct ring *r, uint32_t tile, uint64_t at, uint64_t room)
{
    r->pin[tile].pinned = true;
    r->pin[tile].at = at;
    r->pinned_bytes += weight_bytes(r, tile);
    return at + room;
}

uint64_t ring_choose_pins(struct ring *r, uint64_t budget, bool routers_first, tile_room_fn room, const void *arg)
{
    uint64_t total = 0, seen = 0, at = 0;
    for (uint32_t i = 0; i < r->order->ntiles; i++)
        total += room(arg, i);
    budget = budget < total ? budget : total;
    if (!budget)
        return 0;
    for (uint32_t i = 0; i < r->order->ntiles && routers_first; i++)
        if (of_router(r, i) && at + room(arg, i) <= budget)
            at = pin(r, i, at, room(arg, i));
    uint64_t routers = at;
    for (uint32_t i = 0; i < r->order->ntiles; i++) {
        uint64_t bytes = room(arg, i);
        if (r->pin[i].pinned)
            continue;
        seen += bytes;
        /* Of what is left of the budget, seen / (total - routers) should be pinned so far. */
        if (at + bytes <= budget && (long double)(at - routers + bytes / 2) <=
                                        (long double)(budget - routers) * (long double)seen / (long double)(total - routers))
            at = pin(r, i, at, bytes);
    }
    return budget;
}

bool ring_all_pinned(const struct ring *r)
{
    for (uint32_t i = 0; i < r->order->ntiles; i++)
        if (!r->pin[i].pinned)
            return false;
    return true;
}

/* ---- the forward pass ---- */

void ring_begin(struct ring *r, bool head, bool more)
{
    r->pass++;
    r->head = head;
    r->more = more;
    r->tile = r->piece = 0;
    if (r->ahead_pass < r->pass) {
        r->ahead_pass = r->pass;
        r->ahead_tile = 0;
    }
}

/* The tile at hand in the ring, or where it is pinned and has been met before, NULL with its data. */
static struct ring_entry *at_hand(const struct ring *r, const uint8_t **data)
{
    *data = r->pin[r->tile].data;
    return *data || !r->n ? NULL : &r->entry[r->first];
}

enum ring_answer ring_next(struct ring *r, const k3_piece **piece, const uint8_t **data)
{
    if (r->tile >= (r->head ? r->order->ntiles : r->order->head))
        return RING_PAST_END;
    const uint8_t *tile;
    const struct ring_entry *e = at_hand(r, &tile);
    if (e && e->state == TILE_FAILED)
        return RING_BROKEN;
    if (!tile && (!e || e->state != TILE_READY))
        return RING_WAIT;
    if (e && e->tile != r->tile)
        return RING_DISORDER;
    if (e) {
        tile = e->data;
        if (e->buffer < 0)
            r->pin[r->tile].data = tile;
    }
    *piece = &r->order->pieces[r->order->tiles[r->tile].first + r->piece];
    *data = tile + (*piece)->offset;
    return RING_DATA;
}

/* The tile at hand leaves the ring, if it came through it: a pinned one does only the first time. */
static void leave(struct ring *r)
{
    struct ring_entry *e = &r->entry[r->first];
    if (!r->n || e->tile != r->tile)
        return;
    *(r->order->tiles[r->tile].layer < 0 ? &r->head_bytes : &r->trunk_bytes) += weight_bytes(r, r->tile);
    if (e->buffer >= 0)
        r->buffer_used[e->buffer] = false;
    e->state = TILE_FREE;
    r->first = (r->first + 1) % r->capacity;
    r->n--;
}

enum ring_progress ring_release(struct ring *r)
{
    const k3_tile *t = &r->order->tiles[r->tile];
    if (++r->piece < t->npieces)
        return RING_IN_TILE;
    leave(r);
    r->tile++;
    r->piece = 0;
    return r->tile == r->order->ntiles || r->order->tiles[r->tile].layer != t->layer ? RING_LAYER_DONE : RING_TILE_DONE;
}

const k3_piece *ring_peek(const struct ring *r, int layer, int tensor, uint64_t row, const uint8_t **data)
{
    *data = NULL;
    for (uint32_t tile = r->tile; tile < r->order->ntiles; tile++) {
        const k3_tile *t = &r->order->tiles[tile];
        for (uint32_t i = t->first; i < t->first + t->npieces; i++) {
            const k3_piece *p = &r->order->pieces[i];
            if (p->layer != layer || p->tensor != tensor || row < p->row0 || row >= (uint64_t)p->row0 + p->rows)
                continue;
            if (r->pin[tile].data)
                *data = r->pin[tile].data + p->offset;
            return p;
        }
    }
    return NULL;
}

/* ---- the readers ---- */

/* At the head: whether the pass has one is known once it has begun. False if it has not. */
static bool pass_head(struct ring *r)
{
    if (r->ahead_tile != r->order->head || r->ahead_tile == r->order->ntiles)
        return true;
    if (r->ahead_pass > r->pass)
        return false;
    if (!r->head)
        r->ahead_tile = r->order->ntiles;
    return true;
}

/* At the end of a pass: on to the next, if there will be one. */
static bool pass_end(struct ring *r)
{
    if (r->ahead_tile < r->order->ntiles)
        return true;
    if (r->ahead_pass > r->pass || (r->ahead_pass == r->pass && !r->more))
        return false;
    r->ahead_pass++;
    r->ahead_tile = 0;
    return true;
}

bool ring_behind(struct ring *r)
{
    while (pass_head(r) && pass_end(r)) {
        if (!r->pin[r->ahead_tile].asked)
            return true;
        r->ahead_tile++;
    }
    return false;
}

static int32_t free_buffer(const struct ring *r)
{
    for (uint32_t i = 0; i < r->buffers; i++)
        if (!r->buffer_used[i])
            return (int32_t)i;
    return -1;
}

struct ring_entry *ring_pick(struct ring *r, uint32_t most)
{
    if (r->n == r->capacity || r->n >= most || !ring_behind(r))
        return NULL;
    struct pinned_tile *pin = &r->pin[r->ahead_tile];
    int32_t buffer = pin->pinned ? -1 : free_buffer(r);
    if (!pin->pinned && buffer < 0)
        return NULL;
    struct ring_entry *e = &r->entry[(r->first + r->n++) % r->capacity];
    *e = (struct ring_entry){.state = TILE_READING, .tile = r->ahead_tile++, .buffer = buffer};
    e->to = pin->pinned ? r->pin_memory + pin->at : r->memory + (uint64_t)buffer * r->buffer_bytes;
    if (buffer >= 0)
        r->buffer_used[buffer] = true;
    pin->asked = pin->pinned;
    return e;
}

void ring_landed(struct ring_entry *e)
{
    e->state = TILE_LANDED;
}

struct ring_entry *ring_pick_check(struct ring *r)
{
    for (uint32_t i = 0; i < r->n; i++) {
        struct ring_entry *e = &r->entry[(r->first + i) % r->capacity];
        if (e->state != TILE_LANDED)
            continue;
        e->state = TILE_CHECKING;
        return e;
    }
    return NULL;
}

void ring_finish(struct ring_entry *e, bool ok)
{
    e->state = ok ? TILE_READY : TILE_FAILED;
}

uint64_t ring_unused(const struct ring *r)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < r->n; i++)
        bytes += weight_bytes(r, r->entry[(r->first + i) % r->capacity].tile);
    return bytes;
}
