/* The run: index, kernels, threads, weights, and the greedy loop. */
#include "plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int on_layer(void *arg, int layer, const float *stream, size_t tokens)
{
    struct engine *e = arg;
    const struct sequence *s = &e->seq[e->nseq - 1];
    (void)stream, (void)tokens;
    k3_progress(false, "%s: layer %d of %" PRIu64 ", prompt of %zu, %zu ids out, %.1f s", k3_prog, layer + 1, e->o->layers,
                s->prompt.n, s->out.n, k3_now() - e->started);
    return k3_interrupted ? K3_ESYS : 0;
}

int engine_open(struct engine *e, struct options *o, k3_err *err)
{
    int status;
    e->o = o;
    e->started = k3_now();
    if (!(e->kernels = k3_kernels_select(NULL, err)))
        return err->status;
    if ((status = k3_index_open(&e->index, o->model, o->index, err)))
        return status;
    e->c = k3_index_config(e->index);
    if ((status = options_finish(o, e->c, err)) || (status = k3_pool_new(&e->pool, o->threads, err)))
        return status;
    return logits_open(&e->logits, o->logits, e->c->vocab, err);
}

void engine_totals(const struct engine *e, struct totals *t)
{
    *t = e->before;
    if (!e->source)
        return;
    const k3_traffic *r = &e->source->base.traffic;
    uint64_t unused = streamer_unused(e->source);
    t->traffic.trunk_bytes += r->trunk_bytes;
    t->traffic.head_bytes += r->head_bytes;
    t->traffic.expert_bytes += r->expert_bytes;
    t->traffic.embed_bytes += r->embed_bytes;
    t->traffic.requests += r->requests;
    t->traffic.hits += r->hits;
    t->traffic.misses += r->misses;
    t->traffic.passes += r->passes;
    t->evictions += e->source->evictions;
    t->unused_bytes += unused;
    t->wait_trunk += e->source->wait_trunk;
    t->wait_experts += e->source->wait_experts;
    t->busy += e->source->busy;
}

void engine_close(struct engine *e)
{
    for (size_t i = 0; i < e->nseq; i++) {
        k3_ids_free(&e->seq[i].prompt);
        k3_ids_free(&e->seq[i].out);
    }
    free(e->seq);
    free(e->row);
    free(e->plan);
    logits_abort(&e->logits);
    k3_model_free(e->model);
    if (e->source)
        k3_source_close(&e->source->base);
    k3_pool_free(e->pool);
    k3_index_close(e->index);
}

/* Feeds n ids; `to_come` ids are still to be generated. If any are, the last
 * row's logits are at *last afterwards. */
static int feed(struct engine *e, k3_state *st, const uint32_t *ids, size_t n, uint64_t to_come, const float **last,
                k3_err *err)
{
    for (size_t done = 0; done < n;) {
        size_t most = e->plan->tokens, part = n - done < most ? n - done : most;
        bool final = done + part == n;
        k3_span span = {st, ids + done, part, e->logits.file ? part : final && to_come > 0};
        double t0 = k3_now();
        int status = k3_forward(e->model, &e->source->base, &span, 1, e->o->layers, !final || to_come > 1, e->row, err);
        e->pass_s += k3_now() - t0;
        if (!status)
            status = logits_add(&e->logits, e->row, span.logits, err);
        if (status)
            return status;
        *last = span.logits ? e->row + (span.logits - 1) * e->c->vocab : NULL;
        done += part;
    }
    return 0;
}

/* The largest logit, the lowest id on ties. */
static uint32_t best_id(const float *row, uint64_t vocab)
{
    uint32_t best = 0;
    for (uint64_t i = 1; i < vocab; i++)
        if (row[i] > row[best])
            best = (uint32_t)i;
    return best;
}

static int generate(struct engine *e, struct sequence *s, k3_state *st, k3_err *err)
{
    const float *row = NULL;
    double t0 = k3_now();
    int status = feed(e, st, s->prompt.id, s->prompt.n, e->o->gen, &row, err);
    s->prompt_s = k3_now() - t0;
    if (status || !e->o->gen)
        return status ? status : output_newline(err);
    if ((status = k3_ids_reserve(&s->out, e->o->gen, err)))
        return status;
    for (;;) {
        struct totals before;
        uint32_t id = best_id(row, e->c->vocab);
        s->out.id[s->out.n++] = id;
        s->stopped = is_stop(e->o, id);
        bool ends = s->stopped || s->out.n == e->o->gen;
        s->gen_s = k3_now() - t0 - s->prompt_s;
        if ((status = output_id(id, ends ? '\n' : ' ', err)) || ends)
            return status;
        double step = k3_now();
        engine_totals(e, &before);
        if ((status = feed(e, st, &id, 1, e->o->gen - s->out.n, &row, err)))
            return status;
        report_token(e, s, &before, k3_now() - step);
    }
}

int engine_run(struct engine *e, struct sequence *line, k3_err *err)
{
    uint64_t positions = line->prompt.n + e->o->gen;
    k3_state *st = NULL;
    struct sequence *seq = realloc(e->seq, (e->nseq + 1) * sizeof *seq);
    if (!seq) {
        k3_ids_free(&line->prompt);
        return k3_fail(err, K3_ESYS, "out of memory");
    }
    e->seq = seq;
    struct sequence *s = &seq[e->nseq++];
    *s = *line;
    if (!s->prompt.n)
        return output_newline(err);
    if (positions > e->c->max_positions)
        k3_note("warning: prompt and generation need %" PRIu64 " positions, the model was made for %" PRIu64, positions,
                e->c->max_positions);
    int status = prepare(e, s->prompt.n, positions, err);
    if (status)
        return status;
    if (!e->opened_s)
        e->opened_s = k3_now() - e->started;
    k3_model_hooks(e->model, &(k3_hooks){.arg = e, .layer = on_layer});
    status = e->plan->spill ? k3_state_new_spilled(&st, e->c, e->o->layers, e->plan->positions, e->o->scratch, err)
                            : k3_state_new(&st, e->c, e->o->layers, e->plan->positions, err);
    if (!status)
        status = generate(e, s, st, err);
    if (st) {
        uint64_t r, w;
        k3_state_traffic(st, &r, &w);
        e->before.scratch_read += r;
        e->before.scratch_written += w;
    }
    k3_state_free(st);
    return status;
}
