/* The run: index, kernels, threads, weights, and the loop over lines. */
#include "plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- hooks of the pass ---- */

static int on_layer(void *arg, int layer, const float *stream, size_t tokens)
{
    struct engine *e = arg;
    (void)stream;
    report_progress(e, layer, tokens);
    return k3_interrupted ? K3_ESYS : 0;
}

static int on_router(void *arg, int layer, const uint16_t *experts, const float *weights, size_t tokens)
{
    return record_routing(arg, layer, experts, weights, tokens);
}

/* ---- opening and closing ---- */

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
    if ((status = options_finish(o, e->c, err)) || (status = k3_pool_new(&e->pool, o->threads, err)) ||
        (status = sampler_init(&e->sampler, e->kernels, o, e->c->vocab, err)) || (status = scores_open(&e->scores, o, err)) ||
        (o->logprobs && (status = k3_file_create(&e->logprobs, o->logprobs, err))) ||
        (o->save_state && (status = k3_file_probe(o->save_state, err))))
        return status;
    return rows_open(&e->logits, o->logits, "<f4", e->c->vocab, err);
}

int engine_finish(struct engine *e, k3_err *err)
{
    int status = rows_commit(&e->logits, err);
    if (!status)
        status = scores_end(e, err);
    if (!status && e->logprobs)
        status = k3_file_commit(&e->logprobs, err);
    if (!status && e->trace)
        status = k3_trace_close(&e->trace, err);
    return status;
}

static void free_sequence(struct sequence *s)
{
    k3_ids_free(&s->ids);
    k3_bytes_free(&s->text);
    k3_state_free(s->state);
    free(s);
}

void engine_close(struct engine *e)
{
    for (size_t i = 0; i < e->nseq; i++)
        free_sequence(e->seq[i]);
    free(e->seq);
    free(e->row);
    free(e->plan);
    rows_abort(&e->logits);
    k3_file_abort(&e->logprobs);
    rows_abort(&e->scores.npy);
    k3_trace_abort(&e->trace);
    free(e->trace_row);
    free(e->trace_hits);
    sampler_free(&e->sampler);
    k3_model_free(e->model);
    if (e->source)
        k3_source_close(&e->source->base);
    k3_pool_free(e->pool);
    k3_index_close(e->index);
}

uint64_t totals_bytes(const struct totals *t)
{
    return t->traffic.trunk_bytes + t->traffic.head_bytes + t->traffic.expert_bytes + t->traffic.embed_bytes + t->unused_bytes;
}

void engine_stop(struct engine *e)
{
    if (e->source)
        streamer_stop(e->source);
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

/* ---- lines: read, admitted, finished ---- */

struct queue {
    struct input in;
    int bad;                     /* status of a line that could not be read; the lines before it are finished first */
    k3_err why;
    size_t admitted;             /* of e->seq: those before it are active or done */
    struct sequence *active[MAX_BATCH];
    size_t nactive;
};

/* Reads lines until `most` wait; blocks for the first only if nothing runs. */
static int read_lines(struct engine *e, struct queue *q, size_t most, k3_err *err)
{
    while (e->nseq - q->admitted < most) {
        bool got, wait = !q->nactive && e->nseq == q->admitted;
        k3_ids ids;
        if (q->bad || (q->bad = input_line(&q->in, wait, &ids, &got, &q->why)) || !got)
            return 0;
        if (e->o->save_state && e->nseq) {
            k3_ids_free(&ids);
            q->bad = k3_fail(&q->why, K3_EUSAGE, "--save-state keeps the state of one line; a second one came");
            return 0;
        }
        int status = 0;
        struct sequence **seq = realloc(e->seq, (e->nseq + 1) * sizeof *seq), *s = seq ? calloc(1, sizeof *s) : NULL;
        e->seq = seq ? seq : e->seq;
        if (!s) {
            k3_ids_free(&ids);
            return k3_fail(err, K3_ESYS, "out of memory");
        }
        *s = (struct sequence){.line = e->nseq, .ids = ids, .prompt = ids.n};
        e->seq[e->nseq++] = s;
        if (e->o->load_state && (status = resume_ids(e, s, err)))
            return status;
    }
    return 0;
}

static uint64_t reach(const struct engine *e, const struct sequence *s)
{
    return s->prompt + e->o->gen;
}

static struct demand waiting_demand(const struct engine *e, const struct queue *q)
{
    struct demand d = {0};
    for (size_t i = q->admitted; i < e->nseq; i++) {
        const struct sequence *s = e->seq[i];
        if (s->fed == s->ids.n)
            continue;
        d.sequences++;
        d.prompt += s->ids.n - s->fed;
        d.positions = reach(e, s) > d.positions ? reach(e, s) : d.positions;
    }
    return d;
}

static int start(struct engine *e, struct sequence *s, k3_err *err)
{
    uint64_t positions = e->plan->positions;
    int status = e->plan->spill ? k3_state_new_spilled(&s->state, e->c, e->o->layers, positions, e->o->scratch, err)
                                : k3_state_new(&s->state, e->c, e->o->layers, positions, err);
    if (!status && e->plan->draft)
        status = k3_state_allow_drafts(s->state, 1 + e->plan->draft, err);
    if (!status && s->fed)
        status = resume_state(e, s, err);
    s->admitted = k3_now();
    if (reach(e, s) > e->c->max_positions)
        k3_note("warning: line %" PRIu64 " needs %" PRIu64 " positions, the model was made for %" PRIu64, s->line + 1, reach(e, s),
                e->c->max_positions);
    return status;
}

/* Lets waiting lines join while there is room. A longer one than planned for waits until nothing runs. */
static int admit(struct engine *e, struct queue *q, k3_err *err)
{
    while (q->admitted < e->nseq) {
        struct sequence *s = e->seq[q->admitted];
        int status = 0;
        if (s->fed == s->ids.n) { /* nothing to feed */
            s->done = true;
            q->admitted++;
            if ((status = output_sequences(e, err)))
                return status;
            continue;
        }
        if (!e->plan || reach(e, s) > e->plan->positions) {
            struct demand d = waiting_demand(e, q);
            if (q->nactive)
                return 0;
            if (e->trace) /* a new plan empties the cache, which a trace cannot say */
                return k3_fail(err, K3_EUSAGE, "line %" PRIu64 " needs %" PRIu64 " positions and %" PRIu64
                               " were planned for; with --trace give --context %" PRIu64,
                               s->line + 1, reach(e, s), e->plan->positions, reach(e, s));
            if ((status = prepare(e, &d, err)) || (status = record_open(e, err)))
                return status;
            k3_model_hooks(e->model, &(k3_hooks){.arg = e, .layer = on_layer, .router = e->trace ? on_router : NULL});
            if (!e->opened_s) {
                e->opened_s = k3_now() - e->started;
                drafts_init(&e->drafts, e->source->order->trunk_bytes + e->source->order->head_bytes);
            }
        }
        if (q->nactive == e->plan->sequences)
            return 0;
        if ((status = start(e, s, err)))
            return status;
        q->active[q->nactive++] = s;
        q->admitted++;
    }
    return 0;
}

/* Finished sequences leave; their state goes with them. */
static int retire(struct engine *e, struct queue *q, k3_err *err)
{
    size_t kept = 0;
    int status = 0;
    for (size_t i = 0; i < q->nactive; i++) {
        struct sequence *s = q->active[i];
        uint64_t r, w;
        if (!s->done) {
            q->active[kept++] = s;
            continue;
        }
        if (e->o->save_state && !status)
            e->saved = !(status = resume_save(e, s, err));
        k3_state_traffic(s->state, &r, &w);
        e->before.scratch_read += r;
        e->before.scratch_written += w;
        k3_state_free(s->state);
        s->state = NULL;
    }
    q->nactive = kept;
    return status;
}

int engine_run(struct engine *e, k3_err *err)
{
    struct queue *q = calloc(1, sizeof *q);
    if (!q)
        return k3_fail(err, K3_ESYS, "out of memory");
    input_start(&q->in, (uint32_t)e->c->vocab);
    size_t ahead = e->o->batch ? e->o->batch : MOST_TOGETHER;
    int status = 0;
    while (!status) {
        if ((status = read_lines(e, q, ahead, err)) || (status = admit(e, q, err)))
            break;
        if (!q->nactive && (q->in.closed || q->bad) && q->admitted == e->nseq)
            break;
        if (!q->nactive)
            continue;
        status = batch_step(e, q->active, q->nactive, q->admitted < e->nseq, err);
        if (!status)
            status = retire(e, q, err);
    }
    if (!status && !q->bad && e->o->save_state && !e->saved && !k3_interrupted)
        status = k3_fail(err, K3_EDATA, "%s: not written: no line had ids to feed", e->o->save_state);
    if (!status && q->bad)
        *err = q->why;
    status = status ? status : q->bad;
    input_free(&q->in);
    free(q);
    return status;
}
