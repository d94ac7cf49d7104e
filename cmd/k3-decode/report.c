/* SPDX-License-Identifier: Apache-2.0 */
/* What the run did: a few lines on stderr, and the JSON report. */
#include "report.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

/* The lines of input added up. */
struct sums {
    uint64_t prompt, out;
};

/* Seconds until its first id, or until its end if it has none. */
static double prompt_seconds(const struct sequence *s)
{
    double until = s->first_id > 0 ? s->first_id : s->ended;
    return s->admitted > 0 && until > 0 ? until - s->admitted : 0;
}

static double latest(const struct sequence *s)
{
    return s->ended > 0 ? s->ended : k3_now();
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* Seconds for each id of the passes that fed no prompt; `waited`: for drafts, between these passes. */
static double per_token(const struct watch *w, double waited)
{
    return ratio(w->pass_s - w->prompt_s + waited, (double)w->step_ids);
}

/* Seconds of the passes in which nothing was waited for; clocks are read at different moments, so not below 0. */
static double computing(const struct watch *w, const struct totals *t)
{
    double s = w->pass_s - t->wait_trunk - t->wait_experts;
    return s > 0 ? s : 0;
}

static struct sums add_up(const struct session *s)
{
    struct sums t = {s->gone_prompt, s->gone_out};
    for (const struct sequence *q = s->first; q; q = q->next) {
        t.prompt += q->prompt - q->past;
        t.out += q->ids.n - q->prompt;
    }
    return t;
}

static void drafts_short(const struct step *st)
{
    const struct drafts *d = &st->drafts;
    struct drafter_counts c = drafter_counts(st->drafter);
    char a[24];
    if (d->passes)
        k3_note("drafts: %" PRIu64 " of %" PRIu64 " ids right in %" PRIu64 " passes, about %s not read, %.2f s saved", d->accepted,
                d->proposed, d->passes, k3_fmt_bytes(a, d->saved_bytes > 0 ? (uint64_t)d->saved_bytes : 0), d->saved_s);
    if (st->drafter)
        k3_note("the command that drafts was asked %" PRIu64 " times and answered %" PRIu64 ", %" PRIu64 " of them late; waited %.2f s for it",
                c.asked, c.answered, c.late, d->waited_s);
}

void report_short(const struct session *s, int status)
{
    const struct engine *e = &s->engine;
    const struct watch *w = &s->step.watch;
    struct sums sum = add_up(s);
    struct totals t;
    char a[24], b[24], c[24], d[24];
    engine_totals(e, &t);
    const k3_traffic *r = &t.traffic;
    k3_note("%s%" PRIu64 " ids from a prompt of %" PRIu64 " (%" PRIu64 " line%s): ready in %.2f s, prompt %.2f s, then %.3f s a token; %s, %d thread%s",
            status && status != K3_EPIPE ? "failed after " : k3_interrupted ? "interrupted after " : "", sum.out, sum.prompt,
            s->lines, s->lines == 1 ? "" : "s", w->opened_s, w->prompt_s, per_token(w, s->step.drafts.waited_s), e->kernels->name,
            s->o->threads, s->o->threads == 1 ? "" : "s");
    k3_note("read trunk %s, head %s, experts %s, embedding %s in %" PRIu64 " passes; experts: %" PRIu64 " requests, %" PRIu64
            " hits, %" PRIu64 " misses, %" PRIu64 " evictions",
            k3_fmt_bytes(a, r->trunk_bytes), k3_fmt_bytes(b, r->head_bytes), k3_fmt_bytes(c, r->expert_bytes),
            k3_fmt_bytes(d, r->embed_bytes), r->passes, r->requests, r->hits, r->misses, t.evictions);
    if (t.guesses.made)
        k3_note("lookahead: %" PRIu64 " of %" PRIu64 " guesses were right, %" PRIu64 " of them on their way before they were asked for; %"
                PRIu64 " experts were read for nothing (%s)", t.guesses.right, t.guesses.made, t.guesses.early, t.guesses.wasted,
                k3_fmt_bytes(a, t.guesses.wasted * k3_expert_bytes(e->c)));
    k3_fmt_bytes(c, e->plan ? e->plan->total : 0);
    k3_note("waited %.2f s for trunk, %.2f s for experts, computed %.2f s; disk busy %.2f s at %s/s; memory %s%s%s%s",
            t.wait_trunk, t.wait_experts, computing(w, &t), t.busy, k3_fmt_bytes(a, (uint64_t)ratio((double)totals_bytes(&t), t.busy)),
            k3_fmt_bytes(b, k3_peak_rss()), e->plan ? " of " : "", e->plan ? c : "", e->plan ? " planned" : "");
    drafts_short(&s->step);
}

static json_t *ids_json(const uint32_t *ids, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(a, json_integer(ids[i]));
    return a;
}

/* Which rows of a file are the sequence's, counted from 0. */
static void add_rows(json_t *one, const char *name, const char *asked, uint64_t first, uint64_t n)
{
    if (asked)
        json_object_set_new(one, name, json_pack("{s:I, s:I}", "first", (json_int_t)first, "count", (json_int_t)n));
}

static json_t *sequences_json(const struct session *s)
{
    json_t *a = json_array();
    for (const struct sequence *q = s->first; q; q = q->next) {
        size_t out = q->ids.n - q->prompt;
        json_t *one = json_pack("{s:o, s:o, s:b, s:f, s:f}", "prompt_ids", ids_json(q->ids.id + q->past, q->prompt - q->past), "ids",
                                           ids_json(q->ids.id + q->prompt, out), "stopped", q->stopped, "prompt_seconds",
                                           prompt_seconds(q), "generation_seconds", out ? latest(q) - q->first_id : 0.0);
        add_rows(one, "logits_rows", s->o->logits, q->logits_row, q->logits_rows);
        add_rows(one, "scores_rows", s->o->score_npy, q->scores_row, q->scores_rows);
        json_array_append_new(a, one);
    }
    return a;
}

static json_t *traffic_json(const struct watch *w, const struct totals *t)
{
    const k3_traffic *r = &t->traffic;
    return json_pack("{s:I, s:I, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "passes", (json_int_t)r->passes, "prompt_bytes",
                     (json_int_t)w->prompt_bytes, "per_token_bytes",
                     ratio((double)(totals_bytes(t) - w->prompt_bytes), (double)w->step_ids), "trunk_bytes", (json_int_t)r->trunk_bytes, "head_bytes", (json_int_t)r->head_bytes, "expert_bytes",
                     (json_int_t)r->expert_bytes, "embedding_bytes", (json_int_t)r->embed_bytes, "unused_bytes",
                     (json_int_t)t->unused_bytes, "scratch_read_bytes", (json_int_t)t->scratch_read, "scratch_written_bytes",
                     (json_int_t)t->scratch_written, "expert_requests", (json_int_t)r->requests, "expert_hits",
                     (json_int_t)r->hits, "expert_misses", (json_int_t)r->misses, "expert_evictions", (json_int_t)t->evictions, "guesses",
                     (json_int_t)t->guesses.made, "guesses_right", (json_int_t)t->guesses.right, "guesses_early",
                     (json_int_t)t->guesses.early, "guesses_wasted", (json_int_t)t->guesses.wasted);
}

static json_t *time_json(const struct watch *w, double waited, const struct totals *t)
{
    double wall = k3_now() - w->started;
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "wall", wall, "ready", w->opened_s, "prompt", w->prompt_s,
                     "per_token", per_token(w, waited), "waiting_for_trunk", t->wait_trunk, "waiting_for_experts",
                     t->wait_experts, "computing", computing(w, t), "idle", wall - w->pass_s,
                     "disk_busy", t->busy);
}

static json_t *drafts_json(const struct step *st)
{
    const struct drafts *d = &st->drafts;
    struct drafter_counts c = drafter_counts(st->drafter);
    json_t *command = st->drafter ? json_pack("{s:I, s:I, s:I, s:b, s:f}", "asked", (json_int_t)c.asked, "answered",
                                              (json_int_t)c.answered, "late", (json_int_t)c.late, "alive",
                                              drafter_alive(st->drafter), "waited_seconds", d->waited_s) : json_null();
    return json_pack("{s:I, s:I, s:I, s:I, s:f, s:o}", "proposed", (json_int_t)d->proposed, "accepted", (json_int_t)d->accepted,
                     "passes", (json_int_t)d->passes, "saved_bytes", (json_int_t)d->saved_bytes, "saved_seconds", d->saved_s,
                     "command", command);
}

static json_t *plan_json(const struct engine *e, const struct totals *t)
{
    const struct plan *p = e->plan;
    if (!p)
        return json_null();
    return json_pack("{s:I, s:I, s:i, s:I, s:i, s:i, s:I, s:i, s:i, s:s, s:I, s:I, s:I, s:I, s:b}", "planned_bytes", (json_int_t)p->total,
                     "budget_bytes", (json_int_t)p->budget, "ring", (int)p->stream.ring, "tile_bytes",
                     (json_int_t)p->stream.tile_bytes, "io_depth", (int)p->stream.depth, "reads_in_flight", (int)t->reads_in_flight, "pinned_bytes", (json_int_t)t->pinned_bytes,
                     "expert_slots", (int)p->stream.expert_slots, "lookahead", (int)p->stream.lookahead, "cache_policy", k3_policy_name(p->stream.policy), "chunk",
                     (json_int_t)p->tokens, "sequences", (json_int_t)p->sequences, "draft", (json_int_t)p->draft, "positions", (json_int_t)p->positions, "spill", p->spill);
}

static json_t *prefetch_json(const struct engine *e)
{
    return json_pack("{s:s, s:i, s:i, s:s}", "hint", k3_hint_name(e->reading.hint), "distance", (int)e->reading.distance, "streams",
                     (int)e->reading.streams, "from", e->reading_from ? e->reading_from : "usual");
}

int report_write(const struct session *s, k3_file **file, int status, const k3_err *why, k3_err *err)
{
    const struct engine *e = &s->engine;
    const struct watch *w = &s->step.watch;
    struct sums sum = add_up(s);
    struct totals t;
    char print[K3_FINGERPRINT_TEXT];
    const char *error = status && status != K3_EPIPE ? why->text : k3_interrupted ? "interrupted" : NULL;
    int shown = k3_interrupted ? 128 + k3_interrupted : status == K3_EPIPE ? 0 : status; /* as a shell has it */
    engine_totals(e, &t);
    json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s?}", "version",
                             K3_VERSION, "model", s->o->model, "fingerprint",
                             k3_fingerprint_text(print, k3_index_fingerprint(e->index)), "isa", e->kernels->name, "threads",
                             s->o->threads, "layers", (json_int_t)e->set.layers, "prompt_tokens", (json_int_t)sum.prompt,
                             "generated_tokens", (json_int_t)sum.out, "peak_rss_bytes", (json_int_t)k3_peak_rss(), "sequences",
                             sequences_json(s), "read", traffic_json(w, &t), "seconds", time_json(w, s->step.drafts.waited_s, &t), "plan",
                             plan_json(e, &t), "drafts", drafts_json(&s->step), "prefetch", prefetch_json(e), "status", shown, "error", error);
    if (*k3_commit())
        json_object_set_new(root, "commit", json_string(k3_commit()));
    FILE *to = k3_file_stream(*file);
    int bad = !root || json_dumpf(root, to, JSON_INDENT(1)) || fputc('\n', to) == EOF;
    json_decref(root);
    if (bad) {
        int code = k3_fail_write(err, s->o->report);
        k3_file_abort(file);
        return code;
    }
    return k3_file_commit(file, err);
}
