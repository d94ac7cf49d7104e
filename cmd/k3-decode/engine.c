/* SPDX-License-Identifier: Apache-2.0 */
/* The model opened for computing. */
#include "engine.h"
#include "prepare.h"

#include <inttypes.h>
#include <stdlib.h>

int engine_open(struct engine *e, const struct options *o, k3_err *err)
{
    int status;
    *e = (struct engine){0};
    if (!(e->kernels = k3_kernels_select(NULL, err)))
        return err->status;
    if ((status = k3_index_open(&e->index, o->model, o->index, err)))
        return status;
    e->c = k3_index_config(e->index);
    if ((status = settings_resolve(&e->set, o, e->c, err)))
        return status;
    return k3_pool_new(&e->pool, o->threads, err);
}

static void close_prepared(struct engine *e)
{
    if (e->source) {
        stream_stop(e->source);
        engine_totals(e, &e->before);
        stream_close(e->source);
    }
    k3_model_free(e->model);
    free(e->row);
    e->model = NULL;
    e->source = NULL;
    e->row = NULL;
}

/* How products read weights: as given, or measured where it pays: the measurement takes as long as reading a gigabyte or
 * so. It is done once, before anything else has memory. */
static void choose_reading(struct engine *e, const struct plan *p)
{
    enum { ROOM = 128 << 20 };
    const uint64_t pass = p->trunk + p->head + p->stream.pin_bytes;
    if (e->reading_from)
        return;
    e->reading = e->set.o->prefetch;
    e->reading_from = "given";
    if (e->set.o->prefetch_given)
        return;
    const bool pays = pass > UINT64_C(1) << 30 && p->budget > 4 * (uint64_t)ROOM;
    e->reading = k3_reading_usual();
    e->reading_from = pays && k3_reading_measure(e->kernels, e->pool, ROOM, &e->reading) ? "measured" : "usual";
}

/* The new plan; a state that lives on has the drafts and the place that were planned for it. */
static int plan_again(struct engine *e, const struct stream_place *at, const struct demand *d, const k3_state *keep, k3_err *err)
{
    struct limits l = prepare_limits(&e->set);
    if (!e->plan && !(e->plan = calloc(1, sizeof *e->plan)))
        return k3_fail(err, K3_ESYS, "out of memory");
    if (keep) {
        l.spill = e->plan->spill;
        l.draft = e->plan->draft;
    }
    return stream_plan(e->plan, at, e->c, e->index, &l, d, err);
}

int engine_prepare(struct engine *e, const struct demand *d, k3_state *keep, k3_err *err)
{
    struct stream_place at = prepare_place(e->set.o);
    close_prepared(e);
    int status = plan_again(e, &at, d, keep, err);
    struct plan *p = e->plan;
    if (!status) {
        choose_reading(e, p);
        p->stream.reading = e->reading;
        p->stream.reading_fixed = e->set.o->prefetch_given;
    }
    if (!status && keep)
        status = k3_state_grow(keep, p->positions, err);
    if (!status)
        status = stream_open(&e->source, &at, e->index, &p->stream, err);
    if (!status)
        status = k3_model_new(&e->model, e->c, e->kernels, e->pool, p->tokens, p->positions, err);
    if (!status && !(e->row = malloc(p->rows * e->c->vocab * sizeof *e->row)))
        status = k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " rows of logits", p->rows);
    return status;
}

k3_source *engine_source(struct engine *e)
{
    return stream_source(e->source);
}

int engine_new_state(struct engine *e, k3_state **state, k3_err *err)
{
    const struct plan *p = e->plan;
    int status = p->spill ? k3_state_new_spilled(state, e->c, e->set.layers, p->positions, e->set.o->scratch, err)
                          : k3_state_new(state, e->c, e->set.layers, p->positions, err);
    if (!status && p->draft)
        status = k3_state_allow_drafts(*state, 1 + p->draft, err);
    return status;
}

void engine_free_state(struct engine *e, k3_state **state)
{
    uint64_t r, w;
    if (!*state)
        return;
    k3_state_traffic(*state, &r, &w);
    e->before.scratch_read += r;
    e->before.scratch_written += w;
    k3_state_free(*state);
    *state = NULL;
}

void engine_close(struct engine *e)
{
    close_prepared(e);
    free(e->plan);
    k3_pool_free(e->pool);
    k3_index_close(e->index);
}

void engine_stop(struct engine *e)
{
    if (e->source)
        stream_stop(e->source);
}

bool engine_resident(const struct engine *e, int layer, uint16_t expert)
{
    return stream_cached(e->source, layer, expert);
}

uint64_t engine_dense_bytes(const struct engine *e)
{
    const k3_order *order = stream_source(e->source)->order;
    return order->trunk_bytes + order->head_bytes;
}

uint64_t totals_bytes(const struct totals *t)
{
    return t->traffic.trunk_bytes + t->traffic.head_bytes + t->traffic.expert_bytes + t->traffic.embed_bytes + t->unused_bytes;
}

void engine_totals(const struct engine *e, struct totals *t)
{
    struct stream_stats s;
    *t = e->before;
    if (!e->source)
        return;
    stream_stats(e->source, &s);
    const k3_traffic *r = &s.traffic;
    t->traffic.trunk_bytes += r->trunk_bytes;
    t->traffic.head_bytes += r->head_bytes;
    t->traffic.expert_bytes += r->expert_bytes;
    t->traffic.embed_bytes += r->embed_bytes;
    t->traffic.requests += r->requests;
    t->traffic.hits += r->hits;
    t->traffic.misses += r->misses;
    t->traffic.passes += r->passes;
    t->evictions += s.evictions;
    t->unused_bytes += s.unused_bytes;
    t->guesses.made += s.guesses.made;
    t->guesses.right += s.guesses.right;
    t->guesses.early += s.guesses.early;
    t->guesses.wasted += s.guesses.wasted;
    t->wait_trunk += s.wait_trunk;
    t->wait_experts += s.wait_experts;
    t->busy += s.busy;
    t->pinned_bytes = s.pinned_bytes;
    t->reads_in_flight = s.reads_in_flight;
}
