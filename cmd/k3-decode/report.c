/* What the run did: a few lines on stderr, and the JSON report. */
#include "plan.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

/* The lines of input added up. */
struct sums {
    uint64_t prompt, out, steps; /* steps: ids after the first of each line */
    double prompt_s, gen_s;
};

static struct sums add_up(const struct engine *e)
{
    struct sums t = {0};
    for (size_t i = 0; i < e->nseq; i++) {
        t.prompt += e->seq[i].prompt.n;
        t.out += e->seq[i].out.n;
        t.steps += e->seq[i].out.n ? e->seq[i].out.n - 1 : 0;
        t.prompt_s += e->seq[i].prompt_s;
        t.gen_s += e->seq[i].gen_s;
    }
    return t;
}

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

static uint64_t read_bytes(const struct totals *t)
{
    return t->traffic.trunk_bytes + t->traffic.head_bytes + t->traffic.expert_bytes + t->traffic.embed_bytes + t->unused_bytes;
}

void report_token(const struct engine *e, const struct sequence *s, const struct totals *before, double seconds)
{
    struct totals now;
    char a[24];
    if (k3_verbosity < 1)
        return;
    engine_totals(e, &now);
    k3_note("token %zu: id %" PRIu32 " fed in %.3f s, read %s, waited for trunk %.3f s, for experts %.3f s, hits %" PRIu64
            " of %" PRIu64,
            s->out.n, s->out.id[s->out.n - 1], seconds, k3_fmt_bytes(a, read_bytes(&now) - read_bytes(before)),
            now.wait_trunk - before->wait_trunk, now.wait_experts - before->wait_experts,
            now.traffic.hits - before->traffic.hits, now.traffic.requests - before->traffic.requests);
}

void report_short(const struct engine *e, int status)
{
    struct sums s = add_up(e);
    struct totals t;
    char a[24], b[24], c[24], d[24];
    engine_totals(e, &t);
    const k3_traffic *r = &t.traffic;
    k3_note("%s%" PRIu64 " ids from a prompt of %" PRIu64 " (%zu line%s): ready in %.2f s, prompt %.2f s, then %.3f s a token; %s, %d thread%s",
            status && status != K3_EPIPE ? "failed after " : k3_interrupted ? "interrupted after " : "", s.out, s.prompt,
            e->nseq, e->nseq == 1 ? "" : "s", e->opened_s, s.prompt_s, ratio(s.gen_s, (double)s.steps), e->kernels->name,
            e->o->threads, e->o->threads == 1 ? "" : "s");
    k3_note("read trunk %s, head %s, experts %s, embedding %s in %" PRIu64 " passes; experts: %" PRIu64 " requests, %" PRIu64
            " hits, %" PRIu64 " misses, %" PRIu64 " evictions",
            k3_fmt_bytes(a, r->trunk_bytes), k3_fmt_bytes(b, r->head_bytes), k3_fmt_bytes(c, r->expert_bytes),
            k3_fmt_bytes(d, r->embed_bytes), r->passes, r->requests, r->hits, r->misses, t.evictions);
    k3_note("waited %.2f s for trunk, %.2f s for experts, computed %.2f s; disk busy %.2f s at %s/s; memory %s of %s planned",
            t.wait_trunk, t.wait_experts, e->pass_s - t.wait_trunk - t.wait_experts, t.busy,
            k3_fmt_bytes(a, (uint64_t)ratio((double)read_bytes(&t), t.busy)), k3_fmt_bytes(b, k3_peak_rss()),
            k3_fmt_bytes(c, e->plan ? e->plan->total : 0));
}

static json_t *ids_json(const k3_ids *ids)
{
    json_t *a = json_array();
    for (size_t i = 0; i < ids->n; i++)
        json_array_append_new(a, json_integer(ids->id[i]));
    return a;
}

static json_t *sequences_json(const struct engine *e)
{
    json_t *a = json_array();
    for (size_t i = 0; i < e->nseq; i++) {
        const struct sequence *s = &e->seq[i];
        json_array_append_new(a, json_pack("{s:o, s:o, s:b, s:f, s:f}", "prompt_ids", ids_json(&s->prompt), "ids",
                                           ids_json(&s->out), "stopped", s->stopped, "prompt_seconds", s->prompt_s,
                                           "generation_seconds", s->gen_s));
    }
    return a;
}

static json_t *traffic_json(const struct totals *t)
{
    const k3_traffic *r = &t->traffic;
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "passes", (json_int_t)r->passes,
                     "trunk_bytes", (json_int_t)r->trunk_bytes, "head_bytes", (json_int_t)r->head_bytes, "expert_bytes",
                     (json_int_t)r->expert_bytes, "embedding_bytes", (json_int_t)r->embed_bytes, "unused_bytes",
                     (json_int_t)t->unused_bytes, "scratch_read_bytes", (json_int_t)t->scratch_read, "scratch_written_bytes",
                     (json_int_t)t->scratch_written, "expert_requests", (json_int_t)r->requests, "expert_hits",
                     (json_int_t)r->hits, "expert_misses", (json_int_t)r->misses, "expert_evictions", (json_int_t)t->evictions);
}

static json_t *time_json(const struct engine *e, const struct sums *s, const struct totals *t)
{
    double wall = k3_now() - e->started;
    return json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "wall", wall, "ready", e->opened_s, "prompt", s->prompt_s,
                     "per_token", ratio(s->gen_s, (double)s->steps), "waiting_for_trunk", t->wait_trunk, "waiting_for_experts",
                     t->wait_experts, "computing", e->pass_s - t->wait_trunk - t->wait_experts, "idle", wall - e->pass_s,
                     "disk_busy", t->busy);
}

static json_t *plan_json(const struct engine *e)
{
    const struct plan *p = e->plan;
    if (!p)
        return json_null();
    uint64_t pinned = e->source ? e->source->pinned_bytes : 0;
    return json_pack("{s:I, s:I, s:i, s:I, s:i, s:I, s:i, s:s, s:I, s:I, s:b}", "planned_bytes", (json_int_t)p->total,
                     "budget_bytes", (json_int_t)p->budget, "ring", (int)p->stream.ring, "tile_bytes",
                     (json_int_t)p->stream.tile_bytes, "io_depth", (int)p->stream.depth, "pinned_bytes", (json_int_t)pinned,
                     "expert_slots", (int)p->stream.expert_slots, "cache_policy", k3_policy_name(p->stream.policy), "chunk",
                     (json_int_t)p->tokens, "positions", (json_int_t)p->positions, "spill", p->spill);
}

int report_write(const struct engine *e, k3_file **file, int status, const k3_err *why, k3_err *err)
{
    struct sums s = add_up(e);
    struct totals t;
    char print[K3_FINGERPRINT_TEXT];
    const char *error = status && status != K3_EPIPE ? why->text : k3_interrupted ? "interrupted" : NULL;
    engine_totals(e, &t);
    json_t *root = json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:i, s:s?}", "version",
                             K3_VERSION, "model", e->o->model, "fingerprint",
                             k3_fingerprint_text(print, k3_index_fingerprint(e->index)), "isa", e->kernels->name, "threads",
                             e->o->threads, "layers", (json_int_t)e->o->layers, "prompt_tokens", (json_int_t)s.prompt,
                             "generated_tokens", (json_int_t)s.out, "peak_rss_bytes", (json_int_t)k3_peak_rss(), "sequences",
                             sequences_json(e), "read", traffic_json(&t), "seconds", time_json(e, &s, &t), "plan", plan_json(e),
                             "status", status == K3_EPIPE ? 0 : status, "error", error);
    FILE *to = k3_file_stream(*file);
    int bad = !root || json_dumpf(root, to, JSON_INDENT(1)) || fputc('\n', to) == EOF;
    json_decref(root);
    if (bad) {
        int code = k3_fail_write(err, e->o->report);
        k3_file_abort(file);
        return code;
    }
    return k3_file_commit(file, err);
}
