/* SPDX-License-Identifier: Apache-2.0 */
/* The weight source: what the forward pass calls, opening and closing. */
#include "readers.h"

#include "plan.h"

#include <inttypes.h>
#include <stdlib.h>

static struct streamer *of(k3_source *src)
{
    return (struct streamer *)src;
}

/* ---- tiles ---- */

/* How the products of the layer at hand should read their weights. */
static void tell_reading(struct streamer *s)
{
    const struct ring *r = &s->ring;
    s->base.reading = s->sizes.reading;
    if (!s->sizes.reading_fixed && tune_config(&s->tune, r->pass, ring_layer(r, r->tile, s->tune.p.layers))->keep)
        s->base.reading = k3_reading_kept(s->base.reading);
}

static int stream_begin(k3_source *src, bool head, bool more, k3_err *err)
{
    struct streamer *s = of(src);
    (void)err;
    pthread_mutex_lock(&s->lock);
    ring_begin(&s->ring, head, more);
    src->traffic.passes++;
    tune_pass_begins(&s->tune, s->ring.pass, ring_layer(&s->ring, 0, s->tune.p.layers), k3_now());
    tell_reading(s);
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int stream_next(k3_source *src, const k3_piece **piece, const void **data, k3_err *err)
{
    struct streamer *s = of(src);
    const uint8_t *at = NULL;
    enum ring_answer answer;
    double began = 0;
    int status = 0;
    pthread_mutex_lock(&s->lock);
    while ((answer = ring_next(&s->ring, piece, &at)) == RING_WAIT) {
        began = began > 0 ? began : k3_now();
        pthread_cond_wait(&s->done, &s->lock);
    }
    if (began > 0)
        s->wait_trunk += k3_now() - began;
    if (answer == RING_BROKEN) {
        *err = s->tile_failure;
        status = s->tile_failure.status;
    }
    pthread_mutex_unlock(&s->lock);
    *data = at;
    if (answer == RING_PAST_END)
        return k3_fail(err, K3_ESYS, "weights were asked for past the end of the pass");
    if (answer == RING_DISORDER)
        return k3_fail(err, K3_ESYS, "a tile came out of order");
    return status;
}

static void stream_release(k3_source *src)
{
    struct streamer *s = of(src);
    pthread_mutex_lock(&s->lock);
    const uint32_t tile = s->ring.tile;
    enum ring_progress progress = ring_release(&s->ring);
    if (progress != RING_IN_TILE) {
        src->traffic.trunk_bytes = s->ring.trunk_bytes;
        src->traffic.head_bytes = s->ring.head_bytes;
        pthread_cond_signal(&s->work);
    }
    if (progress == RING_LAYER_DONE) {
        const int layers = s->tune.p.layers;
        tune_layer_ends(&s->tune, s->ring.pass, ring_layer(&s->ring, tile, layers), ring_layer(&s->ring, s->ring.tile, layers),
                        k3_now());
        tell_reading(s);
        pthread_cond_broadcast(&s->work); /* more may be in flight now */
    }
    pthread_mutex_unlock(&s->lock);
}

static const void *stream_peek(k3_source *src, int layer, int tensor, uint64_t row, const k3_piece **piece)
{
    struct streamer *s = of(src);
    const uint8_t *data;
    pthread_mutex_lock(&s->lock);
    *piece = ring_peek(&s->ring, layer, tensor, row, &data);
    pthread_mutex_unlock(&s->lock);
    return data;
}

static int stream_embed(k3_source *src, const uint32_t *ids, size_t n, uint16_t *rows, k3_err *err)
{
    struct streamer *s = of(src);
    int status = storage_read_rows(&s->storage, ids, n, rows, err);
    if (status)
        return status;
    pthread_mutex_lock(&s->lock);
    src->traffic.embed_bytes += n * s->c->hidden * sizeof *rows;
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* ---- experts ---- */

static void stream_expect(k3_source *src, int layer, const uint16_t *experts, size_t n)
{
    struct streamer *s = of(src);
    pthread_mutex_lock(&s->lock);
    experts_expect(&s->experts, layer, experts, n);
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
}

static int stream_want(k3_source *src, int layer, const uint16_t *experts, size_t n, bool ascending, k3_err *err)
{
    struct streamer *s = of(src);
    const struct expert_counts *count = &s->experts.count;
    (void)err;
    pthread_mutex_lock(&s->lock);
    experts_want(&s->experts, layer, experts, n, ascending);
    src->traffic.requests = count->requests;
    src->traffic.hits = count->hits;
    src->traffic.misses = count->requests - count->hits;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

static int stream_expert(k3_source *src, k3_expert *out, k3_err *err)
{
    struct streamer *s = of(src);
    struct expert_job *j;
    double began = 0;
    int status = 0;
    pthread_mutex_lock(&s->lock);
    while (!(j = experts_next(&s->experts)) && !s->expert_failure.status) {
        began = began > 0 ? began : k3_now();
        pthread_cond_wait(&s->done, &s->lock);
    }
    if (began > 0)
        s->wait_experts += k3_now() - began;
    if (s->expert_failure.status) {
        *err = s->expert_failure;
        status = K3_EEXPERT;
    } else {
        experts_hand_out(&s->experts, j, out);
        src->traffic.expert_bytes = s->experts.count.bytes;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

static void stream_expert_release(k3_source *src, k3_expert *e)
{
    struct streamer *s = of(src);
    pthread_mutex_lock(&s->lock);
    if (experts_release(&s->experts, e->handle))
        pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
}

bool stream_cached(const struct streamer *s, int layer, uint16_t expert)
{
    return k3_policy_slot(s->experts.policy, layer, expert) >= 0; /* which this thread alone changes */
}

/* ---- counts ---- */

void stream_stats(struct streamer *s, struct stream_stats *out)
{
    const struct expert_counts *count = &s->experts.count;
    pthread_mutex_lock(&s->lock); /* readers may be running ahead */
    s->base.traffic.expert_bytes = count->bytes;
    *out = (struct stream_stats){.traffic = s->base.traffic, .evictions = count->evictions, .guesses = count->guesses,
                                 .unused_bytes = ring_unused(&s->ring) + count->guesses.wasted * s->experts.p.bytes,
                                 .wait_trunk = s->wait_trunk, .wait_experts = s->wait_experts, .busy = s->flight.busy,
                                 .pinned_bytes = s->ring.pinned_bytes, .reads_in_flight = tune_best(&s->tune)->reads};
    pthread_mutex_unlock(&s->lock);
}

/* ---- opening and closing ---- */

k3_source *stream_source(struct streamer *s)
{
    return &s->base;
}

void stream_stop(struct streamer *s)
{
    readers_stop(s);
    experts_end(&s->experts);
}

void stream_close(struct streamer *s)
{
    if (!s)
        return;
    stream_stop(s);
    ring_free(&s->ring);
    experts_free(&s->experts);
    storage_close(&s->storage);
    k3_big_free(s->ring_memory, s->ring_bytes);
    k3_big_free(s->pin_memory, s->pin_bytes);
    k3_big_free(s->expert_memory, s->expert_bytes);
    free(s->thread);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->landed);
    pthread_cond_destroy(&s->done);
    free(s);
}

static void close_source(k3_source *src)
{
    stream_close(of(src));
}

static int open_ring(struct streamer *s, k3_err *err)
{
    const struct stream_sizes *z = &s->sizes;
    const k3_order *order = s->storage.order;
    int status = ring_init(&s->ring, order, z->ring, stream_threads(z), err);
    if (status)
        return status;
    s->buffer_bytes = k3_direct_room(order->largest);
    s->ring_bytes = z->ring * s->buffer_bytes;
    if (!(s->ring_memory = k3_big_alloc(s->ring_bytes, z->huge)))
        return k3_fail(err, K3_ESYS, "out of memory for a ring of %" PRIu64 " bytes", s->ring_bytes);
    s->pin_bytes = ring_choose_pins(&s->ring, z->pin_bytes, z->lookahead > 0, storage_tile_room, &s->storage);
    if (s->pin_bytes && !(s->pin_memory = k3_big_alloc(s->pin_bytes, z->huge)))
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " bytes of pinned tiles", s->pin_bytes);
    ring_memory(&s->ring, s->ring_memory, s->buffer_bytes, s->pin_memory);
    return 0;
}

static int open_experts(struct streamer *s, k3_err *err)
{
    const k3_config *c = s->c;
    const struct stream_sizes *z = &s->sizes;
    if (!c->moe_layers || z->layers <= c->first_moe)
        return 0;
    s->expert_room = storage_expert_room(s->storage.ix);
    struct expert_params p = {.shape = {.layers = (int)c->layers, .first = (int)c->first_moe, .experts = (int)c->experts, .topk = (int)c->topk},
                              .policy = z->policy, .slots = z->expert_slots, .transit = z->transit, .lookahead = z->lookahead,
                              .room = s->expert_room, .bytes = k3_expert_bytes(c), .file_order = storage_expert_order, .arg = &s->storage};
    s->expert_bytes = experts_memory(&p);
    if (!(s->expert_memory = k3_big_alloc(s->expert_bytes, z->huge)))
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu32 " expert slots of %" PRIu64 " bytes", p.slots, p.room);
    return experts_init(&s->experts, &p, s->expert_memory, err);
}

static void open_tune(struct streamer *s)
{
    const struct stream_sizes *z = &s->sizes;
    const uint64_t tiles = z->depth * s->buffer_bytes, experts = 2 * s->expert_room;
    tune_init(&s->tune, &(struct tune_params){.layers = (int)z->layers, .depth = z->depth, .tiles = s->ring.capacity,
                                              .copies = z->copies, .streams = !ring_all_pinned(&s->ring)});
    s->flight.most_bytes = tiles > experts ? tiles : experts;
    s->base.reading = s->sizes.reading;
}

int stream_open(struct streamer **out, const struct stream_place *at, const k3_index *ix, const struct stream_sizes *sizes, k3_err *err)
{
    char buf[4096];
    *out = NULL;
    struct streamer *s = calloc(1, sizeof *s);
    if (!s)
        return k3_fail(err, K3_ESYS, "out of memory");
    s->base = (k3_source){.begin = stream_begin, .next = stream_next, .release = stream_release, .embed = stream_embed,
                          .want = stream_want, .expert = stream_expert, .expert_release = stream_expert_release,
                          .close = close_source};
    if (sizes->lookahead) {
        s->base.peek = stream_peek;
        s->base.expect = stream_expect;
    }
    s->c = k3_index_config(ix);
    s->sizes = *sizes;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->landed, NULL);
    pthread_cond_init(&s->done, NULL);
    int status = storage_open(&s->storage, ix, stream_trunk_path(at, buf), at->sums, sizes->layers,
                              sizes->tile_bytes, sizes->direct, err);
    if (!status)
        status = open_ring(s, err);
    if (!status)
        status = open_experts(s, err);
    if (!status) {
        s->base.order = s->storage.order;
        open_tune(s);
        status = readers_start(s, err);
    }
    if (status) {
        stream_close(s);
        return status;
    }
    *out = s;
    return 0;
}
