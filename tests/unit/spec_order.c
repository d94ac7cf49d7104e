/* SPDX-License-Identifier: Apache-2.0 */
/* The reading order: whatever the tile size, every streamed byte once, in the order of use. */
#include "k3_spec.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static k3_config *config(const char *dir)
{
    k3_config *c = malloc(sizeof *c);
    k3_err err = {0};
    cr_assert_eq(k3_config_load(dir, c, &err), 0, "%s", err.text);
    return c;
}

static k3_order *order(const k3_config *c, uint64_t first, uint64_t last, bool head, uint64_t tile)
{
    k3_order *o = NULL;
    k3_err err = {0};
    cr_assert_eq(k3_order_new(&o, c, first, last, head, tile, &err), 0, "%s", err.text);
    return o;
}

/* Walks pieces and tensors side by side: each tensor's rows in turn, without a gap. Returns the bytes of the layers
 * first..last and of the head (sums[1]). */
static void walk_tensors(const k3_config *c, const k3_order *o, uint64_t first, uint64_t last, bool head, uint64_t sums[2])
{
    uint32_t p = 0;
    sums[0] = sums[1] = 0;
    for (uint64_t step = first; step <= last; step++) {
        int layer = step < last ? (int)step : -1;
        if (layer < 0 && !head)
            break;
        for (int id = 0; id < K3_TENSORS; id++) {
            k3_tensor t;
            if (!k3_schema_tensor(c, layer, (k3_tensor_id)id, &t) || t.use == K3_USE_ROWS)
                continue;
            uint64_t row = t.cols * k3_dtype_size[t.dtype];
            for (uint64_t at = 0; at < t.rows; p++) {
                cr_assert(p < o->npieces, "the order ends before %s of layer %d", t.name, layer);
                const k3_piece *e = &o->pieces[p];
                cr_assert(e->layer == layer && e->tensor == id, "piece %u is of another tensor than %s", p, t.name);
                cr_assert(e->row0 == at && e->rows > 0 && at + e->rows <= t.rows, "%s: rows %u+%u after %" PRIu64, t.name,
                          e->row0, e->rows, at);
                cr_assert_eq(e->bytes, e->rows * row);
                cr_assert_eq(e->row0 % t.group, 0, "%s: row %u splits a group", t.name, e->row0);
                if (t.use == K3_USE_VECTOR)
                    cr_assert_eq(e->rows, t.rows, "%s is cut", t.name);
                at += e->rows;
                sums[layer < 0] += e->bytes;
            }
        }
    }
    cr_assert_eq(p, o->npieces, "%u pieces too many", o->npieces - p);
}

/* The largest unit that may not be cut. */
static uint64_t unit_bytes(const k3_config *c, const k3_piece *e)
{
    k3_tensor t;
    k3_schema_tensor(c, e->layer, (k3_tensor_id)e->tensor, &t);
    return (t.use == K3_USE_VECTOR ? t.rows : t.group) * t.cols * k3_dtype_size[t.dtype];
}

static void walk_tiles(const k3_config *c, const k3_order *o, uint64_t limit)
{
    uint32_t next = 0, largest = 0;
    for (uint32_t i = 0; i < o->ntiles; i++) {
        const k3_tile *t = &o->tiles[i];
        cr_assert(t->first == next && t->npieces > 0, "tile %u does not follow", i);
        uint64_t end = 0;
        for (uint32_t k = 0; k < t->npieces; k++) {
            const k3_piece *e = &o->pieces[t->first + k];
            cr_assert_eq(e->offset, (end + 63) / 64 * 64, "tile %u piece %u", i, k);
            cr_assert_eq(e->layer, t->layer, "tile %u spans layers", i);
            end = (uint64_t)e->offset + e->bytes;
        }
        cr_assert_eq(t->bytes, end);
        cr_assert(t->bytes <= limit || (t->npieces == 1 && t->bytes == unit_bytes(c, &o->pieces[t->first])),
                  "tile %u has %u bytes, limit %" PRIu64, i, t->bytes, limit);
        largest = t->bytes > largest ? t->bytes : largest;
        next += t->npieces;
    }
    cr_assert_eq(next, o->npieces);
    cr_assert_eq(o->largest, largest);
}

static void check(const k3_config *c, uint64_t first, uint64_t last, bool head, uint64_t limit)
{
    uint64_t sums[2];
    k3_order *o = order(c, first, last, head, limit);
    walk_tensors(c, o, first, last, head, sums);
    walk_tiles(c, o, limit);
    cr_expect_eq(o->trunk_bytes, sums[0]);
    cr_expect_eq(o->head_bytes, sums[1]);
    cr_assert(o->head <= o->ntiles);
    for (uint32_t i = 0; i < o->ntiles; i++)
        cr_assert_eq(o->tiles[i].layer < 0, i >= o->head, "tile %u on the wrong side of the head's first", i);
    k3_order_free(o);
}

static const uint64_t limits[] = {4096, 4097, 5000, 8192, 65536, 99999, (1 << 20) + 1, 16 << 20, 1 << 30};
enum { LIMITS = sizeof limits / sizeof *limits };

Test(spec_order, every_byte_once_at_odd_tile_sizes)
{
    static const char *const dir[] = {"tests/fixtures/odd/model", "tests/fixtures/tiny/model"};
    for (int d = 0; d < 2; d++) {
        k3_config *c = config(dir[d]);
        for (int i = 0; i < LIMITS; i++)
            check(c, 0, c->layers, true, limits[i]);
        free(c);
    }
}

/* The first N layers, one layer alone, the head alone, nothing. */
Test(spec_order, parts_of_the_model)
{
    k3_config *c = config("tests/fixtures/odd/model");
    for (uint64_t last = 0; last <= c->layers; last++)
        for (uint64_t first = 0; first <= last; first++) {
            check(c, first, last, true, 5000);
            check(c, first, last, false, 65536);
        }
    free(c);
}

/* A tile that is filled to the last row, and one that misses it by a byte. */
Test(spec_order, tiles_are_filled)
{
    k3_config *c = config("tests/fixtures/tiny/model");
    k3_tensor q;
    cr_assert(k3_schema_tensor(c, 0, K3_T_Q, &q));
    uint64_t row = q.cols * 2;
    for (int less = 0; less < 2; less++) {
        k3_order *o = order(c, 0, 1, false, 32 * row - (uint64_t)less);
        const k3_piece *e = o->pieces;
        while (e->tensor != K3_T_Q)
            e++;
        cr_expect_eq(e->rows, 32u - (unsigned)less);
        k3_order_free(o);
    }
    free(c);
}

/* A layer's vectors in a tile that they fill to the byte, and in one that is a byte short. */
Test(spec_order, vectors_fill_a_tile)
{
    k3_config *c = config("tests/fixtures/tiny/model");
    k3_order *o = order(c, 0, 1, false, 16 << 20);
    uint64_t all = o->tiles[0].bytes;
    uint32_t pieces = o->tiles[0].npieces;
    k3_order_free(o);
    for (uint32_t less = 0; less < 2; less++) {
        o = order(c, 0, 1, false, all - less);
        cr_expect_eq(o->tiles[0].npieces, pieces - less);
        k3_order_free(o);
    }
    free(c);
}

/* The latent attention uses a head's key and value rows at once. */
Test(spec_order, heads_of_kv_b_stay_whole)
{
    k3_config *c = config("tests/fixtures/odd/model");
    k3_order *o = order(c, 0, c->layers, false, 4096);
    int seen = 0;
    for (const k3_piece *e = o->pieces; e < o->pieces + o->npieces; e++)
        if (e->tensor == K3_T_KV_B) {
            cr_expect(e->row0 % (c->qk_nope + c->v_dim) == 0 && e->rows % (c->qk_nope + c->v_dim) == 0);
            seen++;
        }
    cr_expect_geq(seen, 6, "the tiles are too large to show a cut");
    k3_order_free(o);
    free(c);
}

/* Small vectors must not cost a read each, nor share a tile with a matrix. */
Test(spec_order, vectors_of_a_layer_share_a_tile)
{
    k3_config *c = config("tests/fixtures/tiny/model");
    k3_order *o = order(c, 0, c->layers, true, 16 << 20);
    for (uint32_t i = 0; i < o->ntiles; i++)
        for (uint32_t k = 0; k < o->tiles[i].npieces; k++) {
            k3_tensor t;
            const k3_piece *e = &o->pieces[o->tiles[i].first + k];
            k3_schema_tensor(c, e->layer, (k3_tensor_id)e->tensor, &t);
            bool starts = i == 0 || o->tiles[i - 1].layer != o->tiles[i].layer;
            cr_expect_eq(t.use == K3_USE_VECTOR, starts, "tile %u: %s", i, t.name);
        }
    k3_order_free(o);
    free(c);
}

Test(spec_order, the_release)
{
    const char *real = k3_env("K3_REAL");
    if (!real)
        cr_skip_test("K3_REAL is not set");
    k3_config *c = config(real);
    k3_order *o = order(c, 0, 93, true, 16 << 20);
    cr_expect_eq(o->trunk_bytes, UINT64_C(108811868544), "%" PRIu64, o->trunk_bytes);
    cr_expect_eq(o->head_bytes, UINT64_C(163840) * 7168 * 2 + 3 * 7168 * 2);
    cr_expect(o->largest <= 16 << 20);
    k3_order_free(o);
    for (int i = 3; i < LIMITS; i += 2)
        check(c, 0, 93, true, limits[i]);
    free(c);
}

/* A row that no tile may hold is refused, not cut or overflowed. */
Test(spec_order, a_row_beyond_1_gib_is_refused)
{
    k3_config *c = config("tests/fixtures/tiny/model");
    k3_order *o = NULL;
    k3_err err = {0};
    c->hidden = (1 << 29) + 1;
    cr_expect_neq(k3_order_new(&o, c, 0, c->layers, true, 16 << 20, &err), 0);
    cr_expect(strstr(err.text, "1 GiB") != NULL, "%s", err.text);
    free(c);
}
