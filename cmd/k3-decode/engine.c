/* The model opened for computing. */
#include "engine.h"
#include "plan.h"
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
        streamer_stop(e->source);
        engine_totals(e, &e->before);
        k3_source_close(&e->source->base);
    }
    k3_model_free(e->model);
    free(e->row);
    e->model = NULL;
    e->source = NULL;
    e->row = NULL;
}

int engine_prepare(struct engine *e, const struct demand *d, k3_err *err)
{
    char buf[4096];
    const char *trunk = prepare_trunk(e->set.o, buf);
    close_prepared(e);
    if (!e->plan && !(e->plan = calloc(1, sizeof *e->plan)))
        return k3_fail(err, K3_ESYS, "out of memory");
    struct plan *p = e->plan;
    int status = prepare_plan(p, &e->set, e->index, trunk, d, err);
    if (!status)
        status = streamer_open(&e->source, e->index, trunk, NULL, &p->stream, err);
    if (!status)
        status = k3_model_new(&e->model, e->c, e->kernels, e->pool, p->tokens, p->positions, err);
    if (!status && !(e->row = malloc(p->rows * e->c->vocab * sizeof *e->row)))
        status = k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " rows of logits", p->rows);
    return status;
}

k3_source *engine_source(struct engine *e)
{
    return &e->source->base;
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
        streamer_stop(e->source);
}

bool engine_resident(const struct engine *e, int layer, uint16_t expert)
{
    return k3_policy_slot(e->source->policy, layer, expert) >= 0;
}

uint64_t engine_dense_bytes(const struct engine *e)
{
    return e->source->order->trunk_bytes + e->source->order->head_bytes;
}

uint64_t totals_bytes(const struct totals *t)
{
    return t->traffic.trunk_bytes + t->traffic.head_bytes + t->traffic.expert_bytes + t->traffic.embed_bytes + t->unused_bytes;
}

void engine_totals(const struct engine *e, struct totals *t)
{
    *t = e->before;
    if (!e->source)
        return;
    const k3_traffic *r = &e->source->base.traffic;
    t->unused_bytes += streamer_unused(e->source);
    pthread_mutex_lock(&e->source->lock); /* readers may be running ahead */
    t->traffic.trunk_bytes += r->trunk_bytes;
    t->traffic.head_bytes += r->head_bytes;
    t->traffic.expert_bytes += r->expert_bytes;
    t->traffic.embed_bytes += r->embed_bytes;
    t->traffic.requests += r->requests;
    t->traffic.hits += r->hits;
    t->traffic.misses += r->misses;
    t->traffic.passes += r->passes;
    t->evictions += e->source->evictions;
    t->guesses += e->source->guesses.made;
    t->guesses_right += e->source->guesses.right;
    t->guesses_early += e->source->guesses.early;
    t->guesses_wasted += e->source->guesses.wasted;
    t->wait_trunk += e->source->wait_trunk;
    t->wait_experts += e->source->wait_experts;
    t->busy += e->source->busy;
    pthread_mutex_unlock(&e->source->lock);
}
