/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of tiles, driven by events in every order: no thread, no file. Each tile's bytes are its number, so a buffer
 * that is given away too early is seen as a wrong number. */
#include "../../cmd/k3-decode/stream/ring.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, PER_LAYER = 2, HEAD = LAYERS * PER_LAYER, TILES = HEAD + 1, ROOM = 64, PIECE = 16, MANY = 1000 };

/* Layers of two tiles: a router of one piece, then a matrix of two; a head of one tile. */
struct fixture {
    k3_order order;
    k3_tile tiles[TILES];
    k3_piece pieces[2 * TILES];
    uint8_t memory[8 * ROOM], pins[TILES * ROOM];
    struct ring ring;
};

static uint64_t room(const void *arg, uint32_t tile)
{
    (void)arg, (void)tile;
    return ROOM;
}

static void add_piece(struct fixture *f, k3_tile *t, k3_tensor_id id, uint32_t row0)
{
    f->pieces[f->order.npieces++] = (k3_piece){.layer = t->layer, .tensor = (uint8_t)id, .row0 = row0, .rows = 4,
                                               .offset = t->npieces * PIECE, .bytes = PIECE};
    t->npieces++;
    t->bytes += PIECE;
}

static void add_tile(struct fixture *f, int layer, k3_tensor_id id, int pieces)
{
    k3_tile *t = &f->tiles[f->order.ntiles++];
    *t = (k3_tile){.first = f->order.npieces, .layer = (int16_t)layer};
    for (int i = 0; i < pieces; i++)
        add_piece(f, t, id, 4 * (uint32_t)i);
}

static struct fixture *start(uint32_t buffers, uint64_t pin_budget, bool routers_first)
{
    struct fixture *f = calloc(1, sizeof *f);
    k3_err err = {0};
    for (int l = 0; l < LAYERS; l++) {
        add_tile(f, l, K3_T_ROUTER, 1);
        add_tile(f, l, K3_T_Q, 2);
    }
    f->order.head = f->order.ntiles;
    add_tile(f, -1, K3_T_HEAD, 1);
    f->order.tiles = f->tiles;
    f->order.pieces = f->pieces;
    cr_assert_eq(ring_init(&f->ring, &f->order, buffers, 2, &err), 0);
    cr_assert(ring_choose_pins(&f->ring, pin_budget, routers_first, room, NULL) <= sizeof f->pins);
    ring_memory(&f->ring, f->memory, ROOM, f->pins);
    return f;
}

static void end(struct fixture *f)
{
    ring_free(&f->ring);
    free(f);
}

static void arrive(struct ring_entry *e)
{
    memset(e->to, (int)e->tile, ROOM);
    e->data = e->to;
}

static void read_ok(struct ring_entry *e)
{
    arrive(e);
    ring_finish(e, true);
}

/* Reads whatever may be read now; how many. */
static int read_all(struct fixture *f)
{
    struct ring_entry *e;
    int n = 0;
    for (; (e = ring_pick(&f->ring, MANY)); n++) {
        cr_assert(n < MANY, "it reads without end");
        read_ok(e);
    }
    return n;
}

static enum ring_answer ask(struct fixture *f, int *tile)
{
    const k3_piece *p = NULL;
    const uint8_t *data = NULL;
    enum ring_answer a = ring_next(&f->ring, &p, &data);
    *tile = a == RING_DATA ? *data : -1;
    return a;
}

static void expect_tile(struct fixture *f, int want)
{
    int got;
    cr_assert_eq(ask(f, &got), RING_DATA, "tile %d is not there", want);
    cr_assert_eq(got, want, "tile %d is at hand, not %d", got, want);
}

/* Uses the tile at hand, all its pieces. */
static enum ring_progress use(struct fixture *f, int want)
{
    enum ring_progress p = RING_IN_TILE;
    while (p == RING_IN_TILE) {
        expect_tile(f, want);
        p = ring_release(&f->ring);
    }
    return p;
}

/* A whole pass, reading whenever something may be read. Reads made. */
static int pass(struct fixture *f, bool head, bool more)
{
    int reads = 0;
    ring_begin(&f->ring, head, more);
    for (int t = 0; t < (head ? TILES : HEAD); t++) {
        reads += read_all(f);
        use(f, t);
    }
    return reads + read_all(f);
}

Test(stream_ring, reading_begins_before_the_first_pass)
{
    struct fixture *f = start(4, 0, false);
    cr_expect_eq(read_all(f), 4, "as many as there are buffers");
    cr_expect_eq(ring_pick(&f->ring, MANY), NULL);
    end(f);
}

Test(stream_ring, two_buffers_carry_whole_passes)
{
    struct fixture *f = start(2, 0, false);
    cr_expect_eq(pass(f, true, true), TILES + 2);
    cr_expect_eq(pass(f, true, true), TILES);
    cr_expect_eq(pass(f, true, false), TILES - 2);
    cr_expect_eq(f->ring.n, 0);
    end(f);
}

Test(stream_ring, asked_before_the_read_has_finished)
{
    struct fixture *f = start(2, 0, false);
    int got;
    struct ring_entry *e = ring_pick(&f->ring, MANY);
    ring_begin(&f->ring, true, false);
    cr_expect_eq(ask(f, &got), RING_WAIT);
    read_ok(e);
    expect_tile(f, 0);
    end(f);
}

Test(stream_ring, asked_before_the_read_has_begun)
{
    struct fixture *f = start(2, 0, false);
    int got;
    ring_begin(&f->ring, true, false);
    cr_expect_eq(ask(f, &got), RING_WAIT);
    read_all(f);
    expect_tile(f, 0);
    end(f);
}

Test(stream_ring, asking_twice_changes_nothing)
{
    struct fixture *f = start(2, 0, false);
    ring_begin(&f->ring, true, false);
    read_all(f);
    expect_tile(f, 0);
    expect_tile(f, 0);
    end(f);
}

Test(stream_ring, reads_may_end_in_any_order)
{
    struct fixture *f = start(3, 0, false);
    int got;
    struct ring_entry *a = ring_pick(&f->ring, MANY), *b = ring_pick(&f->ring, MANY), *c = ring_pick(&f->ring, MANY);
    ring_begin(&f->ring, true, false);
    read_ok(c);
    read_ok(b);
    cr_expect_eq(ask(f, &got), RING_WAIT, "the first tile has not come");
    read_ok(a);
    for (int t = 0; t < 3; t++)
        use(f, t);
    end(f);
}

Test(stream_ring, a_failed_read_stops_the_pass_when_it_gets_there)
{
    struct fixture *f = start(3, 0, false);
    int got;
    struct ring_entry *a = ring_pick(&f->ring, MANY), *b = ring_pick(&f->ring, MANY);
    ring_begin(&f->ring, true, false);
    ring_finish(b, false);
    read_ok(a);
    use(f, 0);
    cr_expect_eq(ask(f, &got), RING_BROKEN);
    cr_expect_eq(ask(f, &got), RING_BROKEN, "for good");
    end(f);
}

Test(stream_ring, a_failed_check_is_as_bad)
{
    struct fixture *f = start(3, 0, false);
    int got;
    struct ring_entry *a = ring_pick(&f->ring, MANY);
    ring_begin(&f->ring, true, false);
    arrive(a);
    ring_landed(a);
    cr_assert_eq(ring_pick_check(&f->ring), a);
    ring_finish(a, false);
    cr_expect_eq(ask(f, &got), RING_BROKEN);
    end(f);
}

Test(stream_ring, a_failed_pinned_tile_is_never_used)
{
    struct fixture *f = start(2, TILES * ROOM, false);
    int got;
    ring_begin(&f->ring, true, true);
    ring_finish(ring_pick(&f->ring, MANY), false);
    cr_expect_eq(ask(f, &got), RING_BROKEN);
    end(f);
}

Test(stream_ring, what_landed_is_used_only_after_its_check)
{
    struct fixture *f = start(2, 0, false);
    int got;
    struct ring_entry *a = ring_pick(&f->ring, MANY);
    ring_begin(&f->ring, true, false);
    arrive(a);
    cr_expect_eq(ring_pick_check(&f->ring), NULL, "it is still being read");
    ring_landed(a);
    cr_expect_eq(ask(f, &got), RING_WAIT);
    cr_assert_eq(ring_pick_check(&f->ring), a);
    cr_expect_eq(ring_pick_check(&f->ring), NULL, "one thread checks it");
    cr_expect_eq(ask(f, &got), RING_WAIT);
    ring_finish(a, true);
    expect_tile(f, 0);
    end(f);
}

Test(stream_ring, the_tile_needed_first_is_checked_first)
{
    struct fixture *f = start(3, 0, false);
    struct ring_entry *e[3];
    for (int i = 0; i < 3; i++)
        e[i] = ring_pick(&f->ring, MANY);
    for (int i = 2; i >= 0; i--) {
        arrive(e[i]);
        ring_landed(e[i]);
    }
    for (int i = 0; i < 3; i++)
        cr_expect_eq(ring_pick_check(&f->ring), e[i]);
    end(f);
}

Test(stream_ring, a_buffer_is_free_after_the_last_piece)
{
    struct fixture *f = start(2, 0, false);
    ring_begin(&f->ring, true, false);
    read_all(f);
    use(f, 0);
    cr_expect_eq(read_all(f), 1);
    expect_tile(f, 1); /* of two pieces */
    cr_expect_eq(ring_release(&f->ring), RING_IN_TILE);
    cr_expect_eq(ring_pick(&f->ring, MANY), NULL, "half of tile 1 is still to be used");
    expect_tile(f, 1);
    cr_expect_eq(ring_release(&f->ring), RING_LAYER_DONE);
    cr_expect_neq(ring_pick(&f->ring, MANY), NULL);
    end(f);
}

Test(stream_ring, layers_end_where_they_should)
{
    struct fixture *f = start(4, 0, false);
    ring_begin(&f->ring, true, false);
    for (int t = 0; t < TILES; t++) {
        read_all(f);
        cr_expect_eq(use(f, t), t % 2 || t == HEAD ? RING_LAYER_DONE : RING_TILE_DONE, "tile %d", t);
    }
    cr_expect_eq(ring_layer(&f->ring, 0, LAYERS), 0);
    cr_expect_eq(ring_layer(&f->ring, HEAD, LAYERS), LAYERS);
    cr_expect_eq(ring_layer(&f->ring, TILES, LAYERS), -1);
    end(f);
}

Test(stream_ring, entries_wrap_round_many_times)
{
    for (uint32_t buffers = 2; buffers <= 8; buffers++) {
        struct fixture *f = start(buffers, 0, false);
        for (int i = 0; i < 10; i++)
            pass(f, i % 3 != 1, true);
        end(f);
    }
}

Test(stream_ring, the_head_is_not_read_before_it_is_known_to_be_wanted)
{
    struct fixture *f = start(8, 0, false);
    cr_expect_eq(read_all(f), HEAD);
    ring_begin(&f->ring, true, false);
    cr_expect_eq(read_all(f), 1);
    end(f);
}

Test(stream_ring, a_skipped_head_is_not_read)
{
    struct fixture *f = start(8, 0, false);
    int got;
    cr_expect_eq(pass(f, false, false), HEAD);
    cr_expect_eq(ask(f, &got), RING_PAST_END);
    cr_expect_eq(f->ring.head_bytes, 0);
    end(f);
}

Test(stream_ring, reading_runs_over_a_skipped_head_into_the_next_pass)
{
    struct fixture *f = start(8, 0, false);
    ring_begin(&f->ring, false, true);
    cr_expect_eq(read_all(f), 8, "six tiles, then two of the next pass");
    cr_expect_eq(f->ring.ahead_pass, 2);
    end(f);
}

Test(stream_ring, the_last_pass_reads_no_further)
{
    struct fixture *f = start(8, 0, false);
    cr_expect_eq(pass(f, true, false), TILES);
    cr_expect_eq(ring_unused(&f->ring), 0);
    cr_expect(!ring_behind(&f->ring));
    end(f);
}

Test(stream_ring, a_pass_that_nobody_announced)
{
    struct fixture *f = start(4, 0, false);
    pass(f, true, false);
    cr_expect_eq(pass(f, true, false), TILES);
    end(f);
}

Test(stream_ring, past_the_end)
{
    struct fixture *f = start(4, 0, false);
    int got;
    pass(f, true, true);
    cr_expect_eq(ask(f, &got), RING_PAST_END, "though tiles of the next pass are there");
    end(f);
}

Test(stream_ring, another_tile_than_the_one_at_hand)
{
    struct fixture *f = start(4, 0, false);
    int got;
    ring_begin(&f->ring, true, true);
    read_all(f);
    use(f, 0);
    ring_begin(&f->ring, true, true); /* in the middle of a pass: no caller may */
    cr_expect_eq(ask(f, &got), RING_DISORDER);
    end(f);
}

Test(stream_ring, no_more_than_asked_for_on_their_way)
{
    struct fixture *f = start(4, 0, false);
    struct ring_entry *a = ring_pick(&f->ring, 1);
    cr_assert_neq(a, NULL);
    cr_expect_eq(ring_pick(&f->ring, 1), NULL);
    cr_expect_neq(ring_pick(&f->ring, 2), NULL);
    end(f);
}

Test(stream_ring, no_pins)
{
    struct fixture *f = start(2, ROOM - 1, true);
    cr_expect_eq(f->ring.pinned_bytes, 0, "none fits");
    pass(f, true, true);
    cr_expect_eq(pass(f, true, false), TILES - 2);
    end(f);
}

Test(stream_ring, half_of_the_tiles_pinned_are_spread_evenly)
{
    struct fixture *f = start(2, TILES * ROOM / 2, false);
    int pins = 0, row = 0;
    for (int t = 0; t < TILES; t++) {
        pins += f->ring.pin[t].pinned;
        row = f->ring.pin[t].pinned ? row + 1 : 0;
        cr_expect(row < 2, "two pinned tiles in a row at %d", t);
    }
    cr_expect_eq(pins, TILES / 2);
    cr_expect(!ring_all_pinned(&f->ring));
    pass(f, true, true);
    cr_expect_eq(pass(f, true, true), TILES - pins);
    cr_expect_eq(pass(f, true, false), TILES - pins - 2);
    end(f);
}

Test(stream_ring, all_pinned_are_read_once)
{
    struct fixture *f = start(2, MANY * ROOM, false);
    cr_expect(ring_all_pinned(&f->ring));
    cr_expect_eq(pass(f, true, true), TILES);
    cr_expect_eq(pass(f, true, true), 0);
    cr_expect_eq(pass(f, true, false), 0);
    cr_expect_eq(f->ring.trunk_bytes + f->ring.head_bytes, f->ring.pinned_bytes, "counted once");
    end(f);
}

Test(stream_ring, a_pinned_head_that_is_skipped_at_first)
{
    struct fixture *f = start(2, MANY * ROOM, false);
    cr_expect_eq(pass(f, false, true), HEAD);
    cr_expect_eq(pass(f, true, true), 1);
    cr_expect_eq(pass(f, true, false), 0);
    end(f);
}

Test(stream_ring, a_pinned_tile_needs_no_buffer)
{
    struct fixture *f = start(2, ROOM * 3, true); /* the routers: tiles 0, 2 and 4 */
    for (int t = 0; t < 4; t++)
        cr_expect_neq(ring_pick(&f->ring, MANY), NULL, "tile %d", t);
    cr_expect_eq(ring_pick(&f->ring, MANY), NULL, "entries are used up");
    end(f);
}

Test(stream_ring, routers_are_pinned_first)
{
    struct fixture *f = start(2, ROOM * 4, true);
    for (int t = 0; t < HEAD; t += 2)
        cr_expect(f->ring.pin[t].pinned, "the router in tile %d", t);
    int others = 0;
    for (int t = 1; t < TILES; t += 2)
        others += f->ring.pin[t].pinned;
    others += f->ring.pin[HEAD].pinned;
    cr_expect_eq(others, 1, "one more, of the rest");
    end(f);
}

Test(stream_ring, peeking_sees_what_stays_and_has_been_met)
{
    struct fixture *f = start(8, ROOM * 3, true);
    const uint8_t *data;
    ring_begin(&f->ring, true, true);
    read_all(f);
    cr_expect_neq(ring_peek(&f->ring, 1, K3_T_ROUTER, 2, &data), NULL);
    cr_expect_eq(data, NULL, "it is pinned, but the pass has not met it");
    for (int t = 0; t < TILES; t++, read_all(f))
        use(f, t);
    ring_begin(&f->ring, true, false);
    cr_assert_neq(ring_peek(&f->ring, 1, K3_T_ROUTER, 2, &data), NULL);
    cr_assert_neq(data, NULL);
    cr_expect_eq(*data, 2);
    cr_expect_neq(ring_peek(&f->ring, 1, K3_T_Q, 5, &data), NULL);
    cr_expect_eq(data, NULL, "it goes through the ring");
    cr_expect_eq(ring_peek(&f->ring, 1, K3_T_Q, 8, &data), NULL, "no such row");
    end(f);
}

Test(stream_ring, what_no_pass_has_used)
{
    struct fixture *f = start(3, 0, false);
    read_all(f);
    cr_expect_eq(ring_unused(&f->ring), 4 * PIECE, "tiles of one, two and one pieces");
    ring_begin(&f->ring, true, false);
    use(f, 0);
    cr_expect_eq(ring_unused(&f->ring), 3 * PIECE);
    cr_expect_eq(f->ring.trunk_bytes, PIECE);
    end(f);
}

/* Reads, checks and uses in random order, several passes: every pass sees every tile, and every byte is counted. */
Test(stream_ring, random_orders)
{
    for (unsigned seed = 1; seed <= 300; seed++) {
        unsigned x = seed * 2654435761u;
        struct fixture *f = start(2 + seed % 4, seed % 3 * (TILES * ROOM / 2), seed % 2);
        struct ring_entry *open[16];
        int nopen = 0, left = 4, tile = TILES, got;
        for (int step = 0; left || tile < TILES; step++) {
            cr_assert(step < 100 * MANY, "seed %u: it is stuck", seed);
            x = x * 1664525u + 1013904223u;
            unsigned what = x >> 24, i = nopen ? (x >> 8) % (unsigned)nopen : 0;
            struct ring_entry *e;
            if (what < 90 && (e = ring_pick(&f->ring, MANY))) {
                open[nopen++] = e;
            } else if (what < 180 && nopen) {
                arrive(open[i]);
                ring_landed(open[i]);
                open[i] = open[--nopen];
            } else if (what < 220 && (e = ring_pick_check(&f->ring))) {
                ring_finish(e, true);
            } else if (tile == TILES && left) {
                ring_begin(&f->ring, true, --left > 0);
                tile = 0;
            } else if (tile < TILES && ask(f, &got) == RING_DATA) {
                cr_assert_eq(got, tile, "seed %u", seed);
                tile += ring_release(&f->ring) != RING_IN_TILE;
            }
        }
        uint64_t all = (LAYERS * 3 + 1) * PIECE;
        cr_expect_eq(f->ring.trunk_bytes + f->ring.head_bytes, 4 * all - 3 * f->ring.pinned_bytes, "seed %u", seed);
        cr_expect_eq(f->ring.n, 0);
        end(f);
    }
}
