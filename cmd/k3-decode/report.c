/* What the run did: a few lines on stderr, and the JSON report. */
#include "decode.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

struct totals {
    uint64_t prompt, out;
    double prompt_s, gen_s;
};

static struct totals add_up(const struct engine *e)
{
    struct totals t = {0};
    for (size_t i = 0; i < e->nseq; i++) {
        t.prompt += e->seq[i].prompt.n;
        t.out += e->seq[i].out.n;
        t.prompt_s += e->seq[i].prompt_s;
        t.gen_s += e->seq[i].gen_s;
    }
    return t;
}

/* Seconds a token after the first of each sequence; 0 if there is none. */
static double per_token(const struct engine *e, const struct totals *t)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < e->nseq; i++)
        steps += e->seq[i].out.n ? e->seq[i].out.n - 1 : 0;
    return steps ? t->gen_s / (double)steps : 0;
}

void report_short(const struct engine *e)
{
    struct totals t = add_up(e);
    const k3_traffic *r = &e->source->traffic;
    char a[24], b[24], c[24], d[24], p[24];
    k3_note("%" PRIu64 " ids from a prompt of %" PRIu64 " (%zu line%s): prompt %.2f s, then %.3f s a token; %s, %d thread%s",
            t.out, t.prompt, e->nseq, e->nseq == 1 ? "" : "s", t.prompt_s, per_token(e, &t), e->kernels->name,
            e->o->threads, e->o->threads == 1 ? "" : "s");
    k3_note("read trunk %s, head %s, experts %s (%" PRIu64 " of %" PRIu64 " hit), embedding %s in %" PRIu64
            " passes; peak memory %s",
            k3_fmt_bytes(a, r->trunk_bytes), k3_fmt_bytes(b, r->head_bytes), k3_fmt_bytes(c, r->expert_bytes), r->hits,
            r->requests, k3_fmt_bytes(d, r->embed_bytes), r->passes, k3_fmt_bytes(p, k3_peak_rss()));
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

static json_t *traffic_json(const k3_traffic *r)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "passes", (json_int_t)r->passes, "trunk_bytes",
                     (json_int_t)r->trunk_bytes, "head_bytes", (json_int_t)r->head_bytes, "expert_bytes",
                     (json_int_t)r->expert_bytes, "embedding_bytes", (json_int_t)r->embed_bytes, "expert_requests",
                     (json_int_t)r->requests, "expert_hits", (json_int_t)r->hits, "expert_misses", (json_int_t)r->misses);
}

int report_write(const struct engine *e, k3_file **file, int status, const k3_err *why, k3_err *err)
{
    struct totals t = add_up(e);
    char print[K3_FINGERPRINT_TEXT];
    const char *error = status && status != K3_EPIPE ? why->text : k3_interrupted ? "interrupted" : NULL;
    json_t *root = json_pack(
        "{s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:o, s:I, s:I, s:f, s:f, s:f, s:I, s:i, s:s?}", "version", K3_VERSION, "model",
        e->o->model, "fingerprint", k3_fingerprint_text(print, k3_index_fingerprint(e->index)), "isa", e->kernels->name,
        "threads", e->o->threads, "layers", (json_int_t)e->o->layers, "chunk", (json_int_t)e->o->chunk, "sequences",
        sequences_json(e), "prompt_tokens", (json_int_t)t.prompt, "generated_tokens", (json_int_t)t.out, "prompt_seconds",
        t.prompt_s, "seconds_per_token", per_token(e, &t), "wall_seconds", k3_now() - e->started, "peak_rss_bytes",
        (json_int_t)k3_peak_rss(), "status", status == K3_EPIPE ? 0 : status, "error", error);
    if (root)
        json_object_set_new(root, "read", traffic_json(&e->source->traffic));
    FILE *to = k3_file_stream(*file);
    int bad = !root || json_dumpf(root, to, JSON_INDENT(1)) || fputc('\n', to) == EOF;
    json_decref(root);
    if (bad) {
        int s = k3_fail_write(err, e->o->report);
        k3_file_abort(file);
        return s;
    }
    return k3_file_commit(file, err);
}
