/* SPDX-License-Identifier: Apache-2.0 */
/* info: what a trace holds. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

enum { MAX_POINTS = 64 };

static const char usage[] = "usage: k3-trace info [-m MODEL] [-l] [-t LIST] [--json] [TRACE]\n"
                            "\n"
                            "Requests, distinct experts, reuse, the working set of one token, and the best hit rate\n"
                            "that any cache can reach.\n";

struct layer {
    uint64_t choices, rows, repeats; /* repeats: chosen by the position before, too */
    uint32_t unique;
};

struct info {
    const char *model;
    bool json, layers;
    uint64_t point[MAX_POINTS];  /* numbers of positions */
    uint64_t unique[MAX_POINTS]; /* summed over the layers that reached them */
    uint32_t reached[MAX_POINTS];
    int points;
    k3_trace_header header;
    struct layer *layer;  /* [layers] */
    uint64_t *uses;       /* [ids] */
    uint64_t *last_row;   /* [ids] number + 1 of the layer's row that chose it last */
    k3_requests requests; /* of the current piece, as the engine asks */
    k3_curve *curve;
    uint64_t rows[K3_PHASE_COUNT], requested, resident;
    uint32_t sequences, most_rows;
};

static int parse_points(struct info *in, const char *list, k3_err *err)
{
    char item[32];
    in->points = 0;
    while (k3_opt_word(&list, ',', item, sizeof item)) {
        if (in->points == MAX_POINTS)
            return k3_fail(err, K3_EUSAGE, "--tokens: more than %d numbers", MAX_POINTS);
        int status = k3_num_u64(item, "--tokens", 1, UINT32_MAX, &in->point[in->points++], err);
        if (status)
            return status;
    }
    return 0;
}

/* ---- gathering ---------------------------------------------------------------------- */

static void take_row(struct info *in, const k3_trace_batch *b, int r)
{
    const k3_shape *s = &in->header.shape;
    struct layer *l = &in->layer[b->layer];
    size_t base = (size_t)(b->layer - s->first) * (size_t)s->experts;
    l->rows++;
    l->choices += (uint64_t)b->k;
    for (int i = r * b->k; i < (r + 1) * b->k; i++) {
        size_t id = base + (size_t)b->experts[i];
        l->unique += !in->uses[id]++;
        l->repeats += l->rows > 1 && in->last_row[id] == l->rows - 1;
        in->last_row[id] = l->rows;
        in->resident += b->residency ? b->residency[i] : 0;
    }
    for (int p = 0; p < in->points; p++)
        if (in->point[p] == l->rows) {
            in->unique[p] += l->unique;
            in->reached[p]++;
        }
}

static int gather(struct info *in, k3_trace_reader *r, k3_err *err)
{
    const k3_trace_batch *b;
    bool seen = false;
    int status;
    while (!(status = k3_trace_next(r, &b, err)) && b) {
        for (int i = 0; i < b->rows; i++) {
            take_row(in, b, i);
            if (!b->new_step && seen)
                continue;
            in->rows[b->row[i].phase]++;
            if (b->row[i].sequence >= in->sequences)
                in->sequences = b->row[i].sequence + 1;
        }
        seen = true;
        in->most_rows = (uint32_t)b->rows > in->most_rows ? (uint32_t)b->rows : in->most_rows;
        if ((status = k3_requests_add(&in->requests, b, true, err)))
            break;
        if (in->requests.n < 1 << 18)
            continue;
        in->requested += in->requests.n;
        if ((status = k3_curve_run(in->curve, &in->requests, err)))
            break;
        k3_requests_clear(&in->requests);
    }
    in->requested += in->requests.n;
    return status ? status : k3_curve_run(in->curve, &in->requests, err);
}

/* ---- what comes out ------------------------------------------------------------------- */

static uint64_t sum_rows(const struct info *in)
{
    uint64_t n = 0;
    for (int i = 0; i < K3_PHASE_COUNT; i++)
        n += in->rows[i];
    return n;
}

/* Smallest number of slots with which an LRU hits `part` of all repeated requests. */
static uint32_t reuse_quantile(const struct info *in, double part)
{
    uint32_t distinct = k3_curve_distinct(in->curve);
    uint64_t repeats = in->requested - distinct;
    for (uint32_t d = 1; d <= distinct; d++)
        if (k3_curve_hits(in->curve, d) && (double)k3_curve_hits(in->curve, d) >= part * (double)repeats)
            return d;
    return 0;
}

static double ratio(uint64_t a, uint64_t b)
{
    return b ? (double)a / (double)b : 0;
}

static uint32_t hottest(const struct info *in, int layer)
{
    const uint64_t *uses = in->uses + (size_t)(layer - in->header.shape.first) * (size_t)in->header.shape.experts;
    uint32_t best = 0;
    for (uint32_t e = 1; e < (uint32_t)in->header.shape.experts; e++)
        if (uses[e] > uses[best])
            best = e;
    return best;
}

static uint64_t hottest_uses(const struct info *in, int layer)
{
    return in->uses[(size_t)(layer - in->header.shape.first) * (size_t)in->header.shape.experts + hottest(in, layer)];
}

static void print_layers(const struct info *in)
{
    printf("\n%5s %10s %7s %9s %8s %8s\n", "layer", "choices", "unique", "repeat %", "hottest", "uses");
    for (int l = in->header.shape.first; l < in->header.shape.layers; l++) {
        const struct layer *x = &in->layer[l];
        if (x->choices)
            printf("%5d %10" PRIu64 " %7u %9.2f %8u %8" PRIu64 "\n", l, x->choices, x->unique,
                   100 * ratio(x->repeats, x->choices), hottest(in, l), hottest_uses(in, l));
    }
}

static void print_model(const struct info *in, k3_trace_totals t)
{
    const k3_trace_header *h = &in->header;
    char text[K3_FINGERPRINT_TEXT], size[24];
    printf("model        %s\n", model_text(h->fingerprint, text));
    printf("shape        layers %d to %d, %d experts of %s, %d a position\n", h->shape.first, h->shape.layers - 1,
           h->shape.experts, k3_fmt_bytes(size, h->expert_bytes), h->shape.topk);
    printf("source       %s\n", h->source[0] ? h->source : "not known");
    if (h->policy >= 0)
        printf("cache        %s, %u slots = %s\n", k3_policy_name(h->policy), h->slots,
               k3_fmt_bytes(size, h->slots * h->expert_bytes));
    printf("records      experts%s%s\n", h->weights ? ", weights" : "", h->residency ? ", residency" : "");
    printf("file         %" PRIu64 " frames, %s, %.3f bytes a choice\n", t.frames, k3_fmt_bytes(size, t.bytes),
           ratio(t.bytes, t.choices));
    printf("steps        %" PRIu64 " of up to %u positions, %u sequences\n", t.steps, in->most_rows, in->sequences);
    printf("positions    %" PRIu64 " prefill, %" PRIu64 " decode, %" PRIu64 " draft\n", in->rows[K3_PHASE_PREFILL],
           in->rows[K3_PHASE_DECODE], in->rows[K3_PHASE_DRAFT]);
}

static void print_text(const struct info *in, k3_trace_totals t)
{
    const k3_trace_header *h = &in->header;
    uint64_t distinct = k3_curve_distinct(in->curve), rows = sum_rows(in);
    double pool = (double)(h->shape.layers - h->shape.first) * h->shape.experts, set = ratio(t.choices, rows);
    char size[24];
    print_model(in, t);
    printf("choices      %" PRIu64 ", %" PRIu64 " requests once a chunk asks for each expert once\n", t.choices,
           in->requested);
    printf("distinct     %" PRIu64 " experts = %s, %.2f %% of the pool\n", distinct,
           k3_fmt_bytes(size, distinct * h->expert_bytes), 100 * (double)distinct / pool);
    printf("token's set  %.0f experts = %s\n", set, k3_fmt_bytes(size, (uint64_t)(set * (double)h->expert_bytes)));
    printf("compulsory   %" PRIu64 " misses; no cache hits more than %.2f %% of choices, %.2f %% of requests\n",
           distinct, 100 * ratio(t.choices - distinct, t.choices),
           100 * ratio(in->requested - distinct, in->requested));
    if (h->residency)
        printf("resident     %.2f %% of choices, as recorded\n", 100 * ratio(in->resident, t.choices));
    if (in->requested > distinct)
        printf("reuse        an LRU needs %u slots for its first hit, %u, %u, %u and %u for 25, 50, 75 and 90 %% of "
               "all repeats\n",
               reuse_quantile(in, 0), reuse_quantile(in, 0.25), reuse_quantile(in, 0.5), reuse_quantile(in, 0.75),
               reuse_quantile(in, 0.9));
    else
        printf("reuse        none: no expert is requested twice\n");
    printf("unique       experts a layer after");
    for (int p = 0; p < in->points; p++)
        if (in->reached[p])
            printf(" %" PRIu64 ": %.1f", in->point[p], ratio(in->unique[p], in->reached[p]));
    printf(in->points && in->reached[0] ? " positions\n" : " fewer positions than asked for: not known\n");
    if (in->layers)
        print_layers(in);
}

static json_t *layers_json(const struct info *in)
{
    json_t *list = json_array();
    for (int l = in->header.shape.first; l < in->header.shape.layers; l++) {
        const struct layer *x = &in->layer[l];
        if (x->choices)
            json_array_append_new(list,
                                  json_pack("{sisIsIsIsIsI}", "layer", l, "choices", (json_int_t)x->choices, "unique",
                                            (json_int_t)x->unique, "repeats", (json_int_t)x->repeats, "hottest",
                                            (json_int_t)hottest(in, l), "uses", (json_int_t)hottest_uses(in, l)));
    }
    return list;
}

static void print_json(const struct info *in, k3_trace_totals t)
{
    static const double parts[] = {0, 0.25, 0.5, 0.75, 0.9, 1};
    const k3_trace_header *h = &in->header;
    char text[K3_FINGERPRINT_TEXT];
    uint64_t distinct = k3_curve_distinct(in->curve);
    bool known = h->fingerprint.lo || h->fingerprint.hi;
    json_t *unique = json_array(), *reuse = json_array();
    for (int p = 0; p < in->points; p++)
        if (in->reached[p])
            json_array_append_new(unique,
                                  json_pack("[If]", (json_int_t)in->point[p], ratio(in->unique[p], in->reached[p])));
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        json_array_append_new(reuse, json_pack("[fI]", parts[i], (json_int_t)reuse_quantile(in, parts[i])));
    json_t *o = json_pack(
        "{ss? si si si si sI ss ss? sI sb sb}", "model", known ? model_text(h->fingerprint, text) : NULL, "layers",
        h->shape.layers, "first", h->shape.first, "experts", h->shape.experts, "topk", h->shape.topk, "expert_bytes",
        (json_int_t)h->expert_bytes, "source", h->source, "policy", h->policy < 0 ? NULL : k3_policy_name(h->policy),
        "slots", (json_int_t)h->slots, "weights", h->weights, "residency", h->residency);
    json_t *counts =
        json_pack("{sI sI sI si sI sI sI sI sI sI sI so so so}", "frames", (json_int_t)t.frames, "bytes",
                  (json_int_t)t.bytes, "steps", (json_int_t)t.steps, "sequences", (int)in->sequences, "prefill",
                  (json_int_t)in->rows[K3_PHASE_PREFILL], "decode", (json_int_t)in->rows[K3_PHASE_DECODE], "draft",
                  (json_int_t)in->rows[K3_PHASE_DRAFT], "choices", (json_int_t)t.choices, "requests",
                  (json_int_t)in->requested, "distinct", (json_int_t)distinct, "resident", (json_int_t)in->resident,
                  "reuse_slots", reuse, "unique_per_layer", unique, "per_layer", layers_json(in));
    json_object_update(o, counts);
    json_dumpf(o, stdout, JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(counts);
    json_decref(o);
}

static int run(struct info *in, k3_trace_reader *r, k3_err *err)
{
    const k3_shape *s = &k3_trace_info(r)->shape;
    size_t ids = (size_t)(s->layers - s->first) * (size_t)s->experts;
    in->header = *k3_trace_info(r);
    in->layer = calloc((size_t)s->layers, sizeof *in->layer);
    in->uses = calloc(ids, sizeof *in->uses);
    in->last_row = calloc(ids, sizeof *in->last_row);
    int status =
        in->layer && in->uses && in->last_row ? 0 : k3_fail(err, K3_ESYS, "out of memory for %zu experts", ids);
    if (!status)
        status = k3_requests_new(&in->requests, s, true, err);
    if (!status)
        status = k3_curve_new(&in->curve, s, true, err);
    if (!status)
        status = gather(in, r, err);
    if (!status)
        (in->json ? print_json : print_text)(in, k3_trace_count(r));
    k3_curve_free(in->curve);
    k3_requests_free(&in->requests);
    free(in->layer);
    free(in->uses);
    free(in->last_row);
    return status;
}

static int take_points(void *in, const char *value, k3_err *err)
{
    return parse_points(in, value, err);
}

static const k3_opt table[] = {
    {"model", 'm', "MODEL", "refuse a trace that is not of this checkpoint", K3_OPT_TEXT, offsetof(struct info, model)},
    {"layers", 'l', NULL, "a line for each layer: choices, experts used, repeats, the hottest", K3_OPT_FLAG,
     offsetof(struct info, layers)},
    {"tokens", 't', "LIST", "unique experts a layer after these numbers of positions\n(default: 1,2,5,12,17,40,100,1000)",
     K3_OPT_CALL, .take = take_points},
    {"json", 0, NULL, "the output as JSON", K3_OPT_FLAG, offsetof(struct info, json)},
    K3_COMMON_OPTS,
    {0},
};

int cmd_info(int argc, char **argv, k3_err *err)
{
    struct info in = {.json = false};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    k3_trace_reader *r;
    bool done;
    int status = parse_points(&in, "1,2,5,12,17,40,100,1000", err);
    if (!status)
        status = k3_opt_parse(&args, &in, &done, err);
    if (status || done)
        return status;
    if ((status = open_operand(&args, &r, err)))
        return status;
    status = check_model(in.model, r, NULL, err);
    if (!status)
        status = run(&in, r, err);
    k3_trace_free(r);
    return status;
}
