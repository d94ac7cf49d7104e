/* One pass for all active sequences: prompts in pieces, others one id each, or
 * one id and a draft. Company does not change a sequence's bits. */
#include "plan.h"

#include <inttypes.h>
#include <string.h>

/* What one sequence puts into the pass. */
struct part {
    size_t n, draft;      /* ids from its list, then drafted ones */
    bool finishes;        /* after it every id of the list is fed */
    uint32_t ids[1 + K3_DRAFT_MAX]; /* for a draft: the last id, then the drafted ones */
};

struct pass {
    struct sequence *of[MAX_BATCH];
    k3_span span[MAX_BATCH];
    struct part part[MAX_BATCH];
    size_t n, tokens;
};

/* Ids still to be generated. */
static uint64_t to_come(const struct engine *e, const struct sequence *s)
{
    return e->o->gen - (s->ids.n - s->prompt);
}

/* A draft for a sequence that feeds its last id; only where it can be taken back. */
static void add_draft(struct engine *e, struct sequence *s, struct part *p, size_t room)
{
    uint64_t left = to_come(e, s), most = e->plan->draft;
    if (!most || p->n != 1 || !p->finishes || left < 2 || s->ids.n == s->prompt)
        return;
    most = most < left - 1 ? most : left - 1;
    most = most < room ? most : room;
    p->ids[0] = s->ids.id[s->ids.n - 1];
    p->draft = drafts_propose(&e->drafts, s->ids.id, s->ids.n, most, p->ids + 1);
}

static size_t rows_wanted(const struct engine *e, const struct part *p, size_t n)
{
    if (e->logits.file || e->o->score || e->o->perplexity || e->o->score_npy)
        return n;
    return p->finishes && e->o->gen ? 1 + p->draft : 0;
}

/* Every sequence gets at least one token; what is left goes to prompts in order. */
static void compose(struct engine *e, struct sequence **active, size_t n, struct pass *pass)
{
    size_t room = e->plan->tokens - n;
    *pass = (struct pass){.n = n};
    for (size_t i = 0; i < n; i++) {
        struct sequence *s = active[i];
        struct part *p = &pass->part[i];
        size_t left = s->ids.n - s->fed;
        p->n = left - 1 <= room ? left : room + 1;
        p->finishes = p->n == left;
        add_draft(e, s, p, room + 1 - p->n);
        room -= p->n - 1 + p->draft;
        size_t tokens = p->n + p->draft;
        pass->of[i] = s;
        pass->span[i] = (k3_span){s->state, p->draft ? p->ids : s->ids.id + s->fed, tokens, rows_wanted(e, p, tokens), p->draft > 0};
        pass->tokens += tokens;
    }
}

/* Whether a pass will follow: some prompt goes on, or more than one id is to come, or lines wait. */
static bool more_to_come(const struct engine *e, const struct pass *pass, bool waiting)
{
    for (size_t i = 0; i < pass->n; i++)
        if (!pass->part[i].finishes || (e->o->gen && to_come(e, pass->of[i]) > 1 + pass->part[i].draft))
            return true;
    return waiting;
}

/* Takes an id that the sequence goes on with; true if that ends it. */
static int take_id(struct engine *e, struct sequence *s, uint32_t id, const float *row, k3_err *err)
{
    int status = k3_ids_reserve(&s->ids, 1, err);
    if (status)
        return status;
    s->ids.id[s->ids.n++] = id;
    if (!s->first_id)
        s->first_id = k3_now();
    s->stopped = is_stop(e->o, id);
    s->done = s->stopped || !to_come(e, s);
    if (!e->logprobs && !e->o->stream_json)
        return 0;
    double lp = sampler_logprob(&e->sampler, row, id);
    if (e->logprobs && fprintf(k3_file_stream(e->logprobs), "%" PRIu64 "\t%zu\t%" PRIu32 "\t%.6f\n", s->line + 1,
                               s->ids.n - s->prompt, id, lp) < 0)
        return k3_fail_write(err, e->o->logprobs);
    return e->o->stream_json ? output_event(e, s, id, lp, err) : 0;
}

/* From the rows of a sequence that has fed all its ids: the next one, and more while the draft was right. */
static int take_rows(struct engine *e, struct sequence *s, const struct part *p, const float *rows, size_t *right, k3_err *err)
{
    int status = 0;
    *right = 0;
    for (;;) {
        const float *row = rows + *right * e->c->vocab;
        uint32_t id = sampler_pick(&e->sampler, row, s->ids.n);
        if ((status = take_id(e, s, id, row, err)) || s->done || *right == p->draft || id != p->ids[1 + *right])
            return status;
        ++*right;
    }
}

/* What the pass gave one sequence; rows are its logits. */
static int settle(struct engine *e, struct pass *pass, size_t i, const float *rows, k3_err *err)
{
    struct sequence *s = pass->of[i];
    struct part *p = &pass->part[i];
    size_t first = s->fed, right = 0;
    int status = 0;
    s->fed += p->n;
    if (e->o->score || e->o->perplexity || e->o->score_npy)
        status = scores_add(e, s, first, p->n, rows, err);
    const float *last = rows + (pass->span[i].logits - 1 - p->draft) * e->c->vocab;
    if (!status && p->finishes && !e->o->gen)
        s->done = true;
    else if (!status && p->finishes)
        status = take_rows(e, s, p, last, &right, err);
    s->fed += right;
    if (p->draft)
        k3_state_accept(s->state, 1 + right);
    if (!status)
        status = rows_add(&e->logits, rows, e->logits.file ? p->n + right : 0, err);
    if (s->done)
        s->ended = k3_now();
    p->draft = p->draft ? right + 1 : 0; /* for what follows: ids that this pass brought, if it drafted */
    return status;
}

/* How far the prompts are, for whoever watches; true if the pass feeds some. */
static bool feeding_begin(struct engine *e, const struct pass *pass)
{
    struct feeding *f = &e->feeding;
    f->now = f->left = 0;
    for (size_t i = 0; i < pass->n; i++) {
        const struct sequence *s = pass->of[i];
        if (s->fed >= s->prompt)
            continue;
        f->now += pass->part[i].n;
        f->left += s->prompt - s->fed;
    }
    f->began = k3_now();
    if (!f->now)
        *f = (struct feeding){0};
    return f->now > 0;
}

static void feeding_end(struct engine *e, double seconds, uint64_t bytes)
{
    struct feeding *f = &e->feeding;
    e->prompt_s += f->now ? seconds : 0;
    e->prompt_bytes += f->now ? bytes : 0;
    f->seconds += seconds;
    f->before += f->now;
    f->chunks++;
}

static size_t ids_of(struct sequence *const *active, size_t n)
{
    size_t ids = 0;
    for (size_t i = 0; i < n; i++)
        ids += active[i]->ids.n;
    return ids;
}

int batch_step(struct engine *e, struct sequence **active, size_t n, bool waiting, k3_err *err)
{
    static struct pass pass; /* too large for the stack */
    struct totals before, after;
    size_t proposed = 0, brought = 0, ids = ids_of(active, n);
    double t0 = k3_now();
    engine_totals(e, &before);
    compose(e, active, n, &pass);
    bool prompts = feeding_begin(e, &pass);
    for (size_t i = 0; i < n; i++)
        proposed += pass.part[i].draft;
    int status = record_pass(e, pass.span, pass.of, n, err);
    if (!status)
        status = k3_forward(e->model, &e->source->base, pass.span, n, e->o->layers, more_to_come(e, &pass, waiting), e->row, err);
    if (status)
        return status;
    const float *rows = e->row;
    for (size_t i = 0; i < n && !status; i++) {
        status = settle(e, &pass, i, rows, err);
        rows += pass.span[i].logits * e->c->vocab;
        brought += pass.part[i].draft;
    }
    double seconds = k3_now() - t0;
    engine_totals(e, &after);
    uint64_t bytes = totals_bytes(&after) - totals_bytes(&before);
    e->pass_s += seconds;
    feeding_end(e, seconds, bytes);
    if (!prompts)
        e->step_ids += ids_of(active, n) - ids;
    if (n == 1 && (proposed || pass.tokens == 1))
        drafts_learn(&e->drafts, proposed, proposed ? brought - 1 : 0, seconds, bytes);
    report_pass(e, n, pass.tokens, &before, seconds);
    return status ? status : output_sequences(e, err);
}
