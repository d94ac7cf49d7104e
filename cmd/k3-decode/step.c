/* SPDX-License-Identifier: Apache-2.0 */
/* What goes into a pass, and what comes of it. */
#include "step.h"
#include "stream/stream.h"

#include <inttypes.h>
#include <stdlib.h>

/* What one sequence puts into the pass. */
struct portion {
    size_t n, draft;      /* ids from its list, then drafted ones */
    bool finishes;        /* after it every id of the list is fed */
    uint32_t ids[1 + K3_DRAFT_MAX]; /* for a draft: the last id, then the drafted ones */
};

struct pass {
    struct sequence *of[MAX_BATCH];
    k3_span span[MAX_BATCH];
    struct portion portion[MAX_BATCH];
    size_t n, tokens;
};

/* Ids still to be generated. */
static uint64_t to_come(const struct step *st, const struct sequence *s)
{
    uint64_t gen = st->engine->set.o->gen;
    if (gen == GEN_MAX)
        return st->most > s->ids.n ? st->most - s->ids.n : 0;
    return gen - (s->ids.n - s->prompt);
}

/* A draft from outside. The wait for it ends when it could no longer pay. */
static size_t ask(struct step *st, struct sequence *s, size_t most, uint32_t *out)
{
    double patience = drafts_patience(&st->drafts, most), began = k3_now();
    size_t n = drafter_propose(st->drafter, s->line, s->ids.id, s->ids.n, &s->told, most, patience, out);
    if (patience > 0)
        drafts_waited(&st->drafts, k3_now() - began, n > 0);
    return drafts_worth(&st->drafts, n);
}

/* A draft for a sequence that feeds its last id; only where it can be taken back. */
static void add_draft(struct step *st, struct sequence *s, struct portion *p, size_t room)
{
    uint64_t left = to_come(st, s), most = st->engine->plan->draft;
    if (!most || p->n != 1 || !p->finishes || left < 2 || s->ids.n == s->prompt)
        return;
    most = most < left - 1 ? most : left - 1;
    most = most < room ? most : room;
    p->ids[0] = s->ids.id[s->ids.n - 1];
    p->draft = st->drafter ? ask(st, s, most, p->ids + 1) : drafts_propose(&st->drafts, s->ids.id, s->ids.n, most, p->ids + 1);
}

static size_t rows_wanted(const struct step *st, const struct portion *p, size_t n)
{
    const struct options *o = st->engine->set.o;
    if (st->logits.file || options_judge(o))
        return n;
    return p->finishes && o->gen ? 1 + p->draft : 0;
}

/* Every sequence gets at least one token; what is left goes to prompts in order. */
static void compose(struct step *st, struct sequence *const *active, size_t n)
{
    struct pass *pass = st->pass;
    size_t room = st->engine->plan->tokens - n;
    pass->n = n;
    pass->tokens = 0;
    for (size_t i = 0; i < n; i++) {
        struct sequence *s = active[i];
        struct portion *p = &pass->portion[i];
        size_t left = s->ids.n - s->fed;
        p->draft = 0;
        p->n = left - 1 <= room ? left : room + 1;
        p->finishes = p->n == left;
        add_draft(st, s, p, room + 1 - p->n);
        room -= p->n - 1 + p->draft;
        size_t tokens = p->n + p->draft;
        pass->of[i] = s;
        pass->span[i] = (k3_span){s->state, p->draft ? p->ids : s->ids.id + s->fed, tokens, rows_wanted(st, p, tokens), p->draft > 0};
        pass->tokens += tokens;
    }
}

/* Whether a pass will follow: some prompt goes on, or more than one id is to come, or lines wait. */
static bool more_to_come(const struct step *st, bool waiting)
{
    const struct pass *pass = st->pass;
    for (size_t i = 0; i < pass->n; i++)
        if (!pass->portion[i].finishes || (st->engine->set.o->gen && to_come(st, pass->of[i]) > 1 + pass->portion[i].draft))
            return true;
    return waiting;
}

/* Takes an id that the sequence goes on with. */
static int take_id(struct step *st, struct sequence *s, uint32_t id, const float *row, k3_err *err)
{
    int status = k3_ids_reserve(&s->ids, 1, err);
    if (status)
        return status;
    s->ids.id[s->ids.n++] = id;
    if (!s->first_id)
        s->first_id = k3_now();
    s->stopped = settings_stop(&st->engine->set, id);
    s->done = s->stopped || !to_come(st, s);
    if (!output_wants_logprob(st->out))
        return 0;
    return output_id(st->out, s, sampler_logprob(&st->sampler, row, id), err);
}

/* From the rows of a sequence that has fed all its ids: the next one, and more while the draft was right. */
static int take_rows(struct step *st, struct sequence *s, const struct portion *p, const float *rows, size_t *right, k3_err *err)
{
    int status = 0;
    *right = 0;
    for (;;) {
        const float *row = rows + *right * st->sampler.vocab;
        uint32_t id = sampler_pick(&st->sampler, row, s->ids.n, s->sample);
        if ((status = take_id(st, s, id, row, err)) || s->done || *right == p->draft || id != p->ids[1 + *right])
            return status;
        ++*right;
    }
}

/* What the pass gave one sequence; rows are its logits. *accepted counts drafted ids that were right. */
static int settle(struct step *st, size_t i, const float *rows, size_t *accepted, k3_err *err)
{
    struct pass *pass = st->pass;
    struct sequence *s = pass->of[i];
    const struct portion *p = &pass->portion[i];
    const struct options *o = st->engine->set.o;
    size_t first = s->fed, right = 0;
    int status = 0;
    s->fed += p->n;
    if (options_judge(o))
        status = scores_add(&st->scores, s, first, p->n, rows, err);
    const float *last = rows + (pass->span[i].logits - 1 - p->draft) * st->sampler.vocab;
    if (!status && p->finishes && !o->gen)
        s->done = true;
    else if (!status && p->finishes)
        status = take_rows(st, s, p, last, &right, err);
    s->fed += right;
    if (p->draft) {
        k3_state_accept(s->state, 1 + right);
        drafts_judged(&st->drafts, p->draft, right);
    }
    if (!status && st->logits.file) {
        s->logits_row = s->logits_rows ? s->logits_row : st->logits.n;
        s->logits_rows += p->n + right;
        status = rows_add(&st->logits, rows, p->n + right, err);
    }
    if (s->done) {
        s->ended = k3_now();
        drafter_line_end(st->drafter, s->line, s->told);
    }
    *accepted += right;
    return status;
}

static int settle_all(struct step *st, size_t *accepted, k3_err *err)
{
    const float *rows = st->engine->row;
    int status = 0;
    for (size_t i = 0; i < st->pass->n && !status; i++) {
        status = settle(st, i, rows, accepted, err);
        rows += st->pass->span[i].logits * st->sampler.vocab;
    }
    return status;
}

/* The ids of prompts in the pass, and with all that are still to come. */
static void begin_watch(struct step *st)
{
    const struct pass *pass = st->pass;
    uint64_t now = 0, left = 0;
    for (size_t i = 0; i < pass->n; i++) {
        const struct sequence *s = pass->of[i];
        if (s->fed >= s->prompt)
            continue;
        now += pass->portion[i].n;
        left += s->prompt - s->fed;
    }
    st->watch.out = st->watch.of = 0;
    for (size_t i = 0; i < pass->n; i++) {
        const struct sequence *s = pass->of[i];
        st->watch.out += s->ids.n - s->prompt;
        st->watch.of += st->engine->set.o->gen == GEN_MAX ? 0 : st->engine->set.o->gen;
    }
    watch_pass(&st->watch, pass->n, pass->tokens, now, left);
}

static size_t ids_of(struct sequence *const *active, size_t n)
{
    size_t ids = 0;
    for (size_t i = 0; i < n; i++)
        ids += active[i]->ids.n;
    return ids;
}

static size_t drafted(const struct pass *pass)
{
    size_t n = 0;
    for (size_t i = 0; i < pass->n; i++)
        n += pass->portion[i].draft;
    return n;
}

int step_run(struct step *st, struct sequence *const *active, size_t n, bool waiting, k3_err *err)
{
    struct engine *e = st->engine;
    struct pass *pass = st->pass;
    size_t accepted = 0, ids = ids_of(active, n);
    double seconds;
    uint64_t bytes;
    compose(st, active, n);
    begin_watch(st);
    int status = record_pass(&st->record, pass->span, pass->of, n, err);
    if (!status)
        status = k3_forward(e->model, engine_source(e), pass->span, n, e->set.layers, more_to_come(st, waiting), e->row, err);
    if (status && !err->status)
        *err = st->record.why;
    if (!status)
        status = settle_all(st, &accepted, err);
    watch_pass_end(&st->watch, ids_of(active, n) - ids, &seconds, &bytes);
    size_t proposed = drafted(pass);
    if (!status && pass->tokens == n + proposed) /* no prompts in it */
        drafts_learn(&st->drafts, n, proposed, accepted, seconds, bytes);
    return status;
}

/* ---- hooks of the pass ---- */

/* Whether what a pass brings is written to more than standard output. */
static bool leaves_files(const struct options *o)
{
    return o->converse || o->save_state || o->trace || o->logprobs || o->logits || options_judge(o);
}

static int on_layer(void *arg, int layer, const float *stream, size_t tokens)
{
    struct step *st = arg;
    (void)stream;
    (void)tokens;
    watch_layer(&st->watch, layer);
    return k3_interrupted && !leaves_files(st->engine->set.o) ? K3_ESYS : 0;
}

static int on_router(void *arg, int layer, const uint16_t *experts, const float *weights, size_t tokens)
{
    struct step *st = arg;
    return record_routing(&st->record, layer, experts, weights, tokens);
}

/* ---- opening and closing ---- */

int step_open(struct step *st, struct engine *e, struct output *out, k3_err *err)
{
    const struct options *o = e->set.o;
    int status;
    st->engine = e;
    st->out = out;
    if (!(st->pass = malloc(sizeof *st->pass)))
        return k3_fail(err, K3_ESYS, "out of memory");
    if (o->draft_from && (status = drafter_start(&st->drafter, o->draft_from, e->c->vocab, err)))
        return status;
    if ((status = sampler_init(&st->sampler, e->kernels, o, e->c->vocab, err)) ||
        (status = scores_open(&st->scores, o, &st->sampler, err)))
        return status;
    return rows_open(&st->logits, o->logits, "<f4", e->c->vocab, err);
}

int step_attach(struct step *st, k3_err *err)
{
    struct engine *e = st->engine;
    int status = record_open(&st->record, e, err);
    if (status)
        return status;
    k3_model_hooks(e->model, &(k3_hooks){.arg = st, .layer = on_layer, .router = st->record.trace ? on_router : NULL});
    if (!st->watch.opened_s)
        drafts_init(&st->drafts, engine_dense_bytes(e));
    watch_opened(&st->watch);
    return 0;
}

int step_commit(struct step *st, k3_err *err)
{
    k3_err late = {0};
    int status = rows_commit(&st->logits, err);
    int scores = scores_end(&st->scores, status ? &late : err);
    status = status ? status : scores;
    int trace = record_commit(&st->record, status ? &late : err);
    return status ? status : trace;
}

void step_close(struct step *st)
{
    drafter_stop(st->drafter);
    rows_abort(&st->logits);
    rows_abort(&st->scores.npy);
    record_close(&st->record);
    sampler_free(&st->sampler);
    free(st->pass);
}
