/* SPDX-License-Identifier: Apache-2.0 */
/* synth: routing by a model of routing. */
#include "trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: k3-trace synth [-o FILE] [-n N] [--seed N] [OPTION ...] [KIND]\n"
    "\n"
    "Kinds: flat    every expert alike\n"
    "       zipf    the r-th most popular expert of a layer in proportion to 1/r^S\n"
    "       py      a Pitman-Yor process in each layer: what was used is used again\n"
    "       markov  py, but a given share of each position repeats the one before, high ranks\n"
    "               more often than low ones\n"
    "       k3      markov with K3's recorded repetition and growth of unique experts (default)\n";

enum kind { FLAT, ZIPF, PY, MARKOV, K3, KINDS };

#define KIND_WORDS "flat|zipf|py|markov|k3"

struct synth {
    const char *out, *model;
    const char *name; /* of the kind */
    enum kind kind;
    k3_trace_header header;
    uint64_t tokens, prompt, sequences, seed;
    double repeat, skew, discount, theta;
    int record;
    uint64_t slots;
    uint64_t rng[2];
    /* per layer (from 0 = the first with experts) */
    uint16_t *last;          /* [layers][topk] the position before */
    bool fresh;             /* there is none: a sequence begins */
    uint32_t *tree;         /* [layers][experts + 1] Fenwick tree over uses, for py */
    uint32_t *uses;         /* [layers][experts] */
    uint32_t *used, *draws; /* [layers] experts used, uses */
    uint16_t *order;        /* [layers][experts] a permutation, for zipf */
    double *sum;            /* [experts] cumulative weights by popularity, for zipf */
    uint32_t *mark, now;    /* [experts] in the current row */
    double *key;            /* [topk] */
    uint16_t *rows;          /* [layers][prompt or 1][topk] */
    uint8_t *resident;
    /* the recorded cache */
    k3_policy *policy;
    uint16_t *distinct;
    int32_t *slot_of;
    uint8_t *seen, *hit, *is_hit;
};

/* ---- random numbers (xoroshiro128+) ---------------------------------------------------- */

static uint64_t next_random(struct synth *s)
{
    uint64_t a = s->rng[0], b = s->rng[1], sum = a + b;
    b ^= a;
    s->rng[0] = (a << 24 | a >> 40) ^ b ^ b << 16;
    s->rng[1] = b << 37 | b >> 27;
    return sum;
}

static double uniform(struct synth *s)
{
    return (double)(next_random(s) >> 11) * 0x1p-53;
}

static uint32_t below(struct synth *s, uint32_t n)
{
    return (uint32_t)((next_random(s) >> 32) * n >> 32);
}

static void seed_random(struct synth *s)
{
    for (int i = 0; i < 2; i++) { /* splitmix64 */
        uint64_t z = s->seed += 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        s->rng[i] = z ^ z >> 31;
    }
}

/* ---- one expert ---------------------------------------------------------------------------- */

/* In proportion to its uses. */
static uint32_t draw_used(struct synth *s, int layer)
{
    uint32_t experts = (uint32_t)s->header.shape.experts, at = 0, step = 1;
    const uint32_t *tree = s->tree + (size_t)layer * (experts + 1);
    uint32_t left = below(s, s->draws[layer]);
    while (2 * step <= experts)
        step *= 2;
    for (; step; step /= 2)
        if (at + step <= experts && tree[at + step] <= left) {
            at += step;
            left -= tree[at];
        }
    return at;
}

static void count_use(struct synth *s, int layer, uint32_t e)
{
    uint32_t experts = (uint32_t)s->header.shape.experts;
    uint32_t *tree = s->tree + (size_t)layer * (experts + 1);
    for (uint32_t i = e + 1; i <= experts; i += i & -i)
        tree[i]++;
    s->used[layer] += !s->uses[(size_t)layer * experts + e]++;
    s->draws[layer]++;
}

/* Halves the uses of a layer before they could overflow. */
static void halve(struct synth *s, int layer)
{
    uint32_t experts = (uint32_t)s->header.shape.experts, *uses = s->uses + (size_t)layer * experts;
    uint32_t *tree = s->tree + (size_t)layer * (experts + 1);
    memset(tree, 0, (experts + 1) * sizeof *tree);
    s->draws[layer] = 0;
    for (uint32_t e = 0; e < experts; e++) {
        uses[e] -= uses[e] / 2;
        s->draws[layer] += uses[e];
        for (uint32_t i = e + 1; i <= experts; i += i & -i)
            tree[i] += uses[e];
    }
}

static uint32_t draw_pitman_yor(struct synth *s, int layer)
{
    uint32_t experts = (uint32_t)s->header.shape.experts;
    const uint32_t *uses = s->uses + (size_t)layer * experts;
    if (s->draws[layer] > 1u << 30)
        halve(s, layer);
    for (;;) {
        double fresh = s->theta + s->discount * s->used[layer], all = s->theta + s->draws[layer];
        if (s->used[layer] < experts && (!s->draws[layer] || uniform(s) * all < fresh)) {
            uint32_t e;
            do
                e = below(s, experts);
            while (uses[e]);
            return e;
        }
        uint32_t e = draw_used(s, layer);
        if (uniform(s) * uses[e] >= s->discount) /* in proportion to uses - discount */
            return e;
    }
}

static uint32_t draw_zipf(struct synth *s, int layer)
{
    uint32_t lo = 0, hi = (uint32_t)s->header.shape.experts - 1;
    double x = uniform(s) * s->sum[hi];
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (s->sum[mid] > x)
            hi = mid;
        else
            lo = mid + 1;
    }
    return s->order[(size_t)layer * (size_t)s->header.shape.experts + lo];
}

static uint32_t draw(struct synth *s, int layer)
{
    if (s->kind == FLAT)
        return below(s, (uint32_t)s->header.shape.experts);
    return s->kind == ZIPF ? draw_zipf(s, layer) : draw_pitman_yor(s, layer);
}

/* ---- one position in one layer ----------------------------------------------------------------- */

/* Share of rank r of the position before that stays: falls linearly to a quarter. */
static double keep_rate(const struct synth *s, int r)
{
    double k = s->header.shape.topk, rate = s->repeat * (k > 1 ? 1.6 - 1.2 * r / (k - 1) : 1);
    return rate < 1 ? rate : 1;
}

/* Keeps some of the position before; returns how many, with keys near their old ranks. */
static int keep_some(struct synth *s, const uint16_t *last, uint16_t *row)
{
    int n = 0, k = s->header.shape.topk;
    for (int r = 0; r < k; r++) {
        if (uniform(s) >= keep_rate(s, r))
            continue;
        row[n] = last[r];
        s->key[n++] = r + (uniform(s) - 0.5) * k / 2;
        s->mark[last[r]] = s->now;
    }
    return n;
}

static void sort_by_key(double *key, uint16_t *row, int n)
{
    for (int i = 1; i < n; i++) {
        double x = key[i];
        uint16_t e = row[i];
        int j = i;
        for (; j && key[j - 1] > x; j--) {
            key[j] = key[j - 1];
            row[j] = row[j - 1];
        }
        key[j] = x;
        row[j] = e;
    }
}

static void make_row(struct synth *s, int layer, uint16_t *row)
{
    int k = s->header.shape.topk, n = 0;
    uint16_t *last = s->last + (size_t)layer * (size_t)k;
    s->now++;
    if (s->kind >= MARKOV && !s->fresh)
        n = keep_some(s, last, row);
    for (; n < k; n++) {
        uint32_t e;
        do
            e = draw(s, layer);
        while (s->mark[e] == s->now);
        s->mark[e] = s->now;
        row[n] = (uint16_t)e;
        s->key[n] = uniform(s) * k;
    }
    if (s->kind >= MARKOV)
        sort_by_key(s->key, row, k);
    for (int i = 0; i < k && s->kind >= PY; i++)
        count_use(s, layer, row[i]);
    memcpy(last, row, (size_t)k * sizeof *last);
}

/* ---- steps ------------------------------------------------------------------------------------------ */

static void ask_cache(struct synth *s, int layer, int rows)
{
    int k = s->header.shape.topk, n = (int)k3_distinct(s->seen, s->rows, (size_t)rows, (size_t)k, s->distinct);
    k3_policy_batch(s->policy, layer, s->distinct, n, s->slot_of, s->hit);
    for (int i = 0; i < n; i++)
        s->is_hit[s->distinct[i]] = s->hit[i];
    for (int i = 0; i < rows * k; i++)
        s->resident[i] = s->is_hit[s->rows[i]];
}

/* One step of `rows` positions. Layers are independent, so each makes all its rows before the next. */
static int make_step(struct synth *s, k3_trace_writer *w, const k3_trace_row *row, int rows, k3_err *err)
{
    const k3_shape *shape = &s->header.shape;
    int status = k3_trace_step_rows(w, row, rows, err);
    bool fresh = s->fresh;
    for (int l = shape->first; l < shape->layers && !status; l++) {
        s->fresh = fresh;
        for (int r = 0; r < rows; r++) {
            make_row(s, l - shape->first, s->rows + (size_t)r * (size_t)shape->topk);
            s->fresh = false;
        }
        if (s->policy)
            ask_cache(s, l, rows);
        status = k3_trace_layer(w, l, s->rows, rows * shape->topk, NULL, s->policy ? s->resident : NULL, err);
    }
    return status;
}

static void start_sequence(struct synth *s)
{
    size_t layers = (size_t)(s->header.shape.layers - s->header.shape.first),
           experts = (size_t)s->header.shape.experts;
    s->fresh = true;
    if (s->kind < PY)
        return;
    memset(s->tree, 0, layers * (experts + 1) * sizeof *s->tree);
    memset(s->uses, 0, layers * experts * sizeof *s->uses);
    memset(s->used, 0, layers * sizeof *s->used);
    memset(s->draws, 0, layers * sizeof *s->draws);
}

static int make_sequence(struct synth *s, k3_trace_writer *w, uint32_t sequence, k3_trace_row *row, k3_err *err)
{
    int status = 0;
    start_sequence(s);
    for (uint64_t i = 0; i < s->prompt; i++)
        row[i] = (k3_trace_row){.position = i, .sequence = sequence, .phase = K3_PHASE_PREFILL};
    if (s->prompt)
        status = make_step(s, w, row, (int)s->prompt, err);
    for (uint64_t t = 0; t < s->tokens && !status; t++) {
        row[0] = (k3_trace_row){.position = s->prompt + t, .sequence = sequence, .phase = K3_PHASE_DECODE};
        status = make_step(s, w, row, 1, err);
    }
    return status;
}

/* ---- setting up ---------------------------------------------------------------------------------------- */

static int allocate(struct synth *s, k3_err *err)
{
    size_t layers = (size_t)(s->header.shape.layers - s->header.shape.first),
           experts = (size_t)s->header.shape.experts;
    size_t k = (size_t)s->header.shape.topk, rows = s->prompt ? s->prompt : 1;
    s->last = calloc(layers * k, sizeof *s->last);
    s->tree = calloc(layers * (experts + 1), sizeof *s->tree);
    s->uses = calloc(layers * experts, sizeof *s->uses);
    s->used = calloc(layers, sizeof *s->used);
    s->draws = calloc(layers, sizeof *s->draws);
    s->order = calloc(layers * experts, sizeof *s->order);
    s->sum = calloc(experts, sizeof *s->sum);
    s->mark = calloc(experts, sizeof *s->mark);
    s->key = calloc(k, sizeof *s->key);
    s->rows = calloc(rows * k, sizeof *s->rows);
    s->resident = calloc(rows * k, 1);
    s->distinct = calloc(experts, sizeof *s->distinct);
    s->slot_of = calloc(experts, sizeof *s->slot_of);
    s->seen = calloc(experts, 1);
    s->hit = calloc(experts, 1);
    s->is_hit = calloc(experts, 1);
    if (!s->last || !s->tree || !s->uses || !s->used || !s->draws || !s->order || !s->sum || !s->mark || !s->key ||
        !s->rows || !s->resident || !s->distinct || !s->slot_of || !s->seen || !s->hit || !s->is_hit)
        return k3_fail(err, K3_ESYS, "out of memory");
    if (s->record < 0)
        return 0;
    return k3_policy_new(&s->policy, s->record, &s->header.shape, (uint32_t)s->slots, err);
}

static void release(struct synth *s)
{
    void *const all[] = {s->last, s->tree, s->uses,     s->used,     s->draws,   s->order, s->sum,   s->mark,
                         s->key,  s->rows, s->resident, s->distinct, s->slot_of, s->seen,  s->hit,   s->is_hit};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    k3_policy_free(s->policy);
}

/* Popularity by rank, and which expert has which rank in each layer. */
static void set_popularity(struct synth *s)
{
    uint32_t layers = (uint32_t)(s->header.shape.layers - s->header.shape.first),
             experts = (uint32_t)s->header.shape.experts;
    for (uint32_t r = 0; r < experts; r++)
        s->sum[r] = (r ? s->sum[r - 1] : 0) + pow(r + 1, -s->skew);
    for (uint32_t l = 0; l < layers; l++) {
        uint16_t *order = s->order + (size_t)l * experts;
        for (uint32_t i = 0; i < experts; i++) {
            uint32_t j = below(s, i + 1);
            order[i] = order[j];
            order[j] = (uint16_t)i;
        }
    }
}

static void describe(struct synth *s)
{
    char *to = s->header.source;
    size_t n = (size_t)snprintf(to, K3_TRACE_SOURCE, "k3-trace synth %s", s->name);
    if (s->kind == ZIPF)
        n += (size_t)snprintf(to + n, K3_TRACE_SOURCE - n, " skew %g", s->skew);
    if (s->kind >= PY)
        n += (size_t)snprintf(to + n, K3_TRACE_SOURCE - n, " discount %g theta %g", s->discount, s->theta);
    if (s->kind >= MARKOV)
        n += (size_t)snprintf(to + n, K3_TRACE_SOURCE - n, " repeat %g", s->repeat);
    snprintf(to + n, K3_TRACE_SOURCE - n, " seed %llu", (unsigned long long)s->seed);
}

static int run(struct synth *s, k3_err *err)
{
    k3_trace_writer *w = NULL;
    k3_trace_row *row = NULL;
    describe(s);
    s->header.policy = s->record;
    s->header.slots = s->record < 0 ? 0 : (uint32_t)s->slots;
    s->header.residency = s->record >= 0;
    int status = k3_trace_check_header(&s->header, err);
    if (!status && s->prompt * (uint64_t)s->header.shape.topk > K3_TRACE_MAX_CHOICES)
        status = k3_fail(err, K3_EUSAGE, "--prompt: %llu positions are too many for one step",
                         (unsigned long long)s->prompt);
    if (!status)
        status = allocate(s, err);
    if (!status && !(row = calloc(s->prompt + 1, sizeof *row)))
        status = k3_fail(err, K3_ESYS, "out of memory");
    if (!status)
        status = create_output(s->out, &s->header, &w, err);
    if (!status) {
        seed_random(s);
        if (s->kind == ZIPF)
            set_popularity(s);
        for (uint64_t q = 0; q < s->sequences && !status; q++)
            status = make_sequence(s, w, (uint32_t)q, row, err);
    }
    if (!status)
        status = k3_trace_close(&w, err);
    k3_trace_abort(&w);
    free(row);
    release(s);
    return status;
}

static int take_shape(void *synth, const char *value, k3_err *err)
{
    return parse_shape(value, &((struct synth *)synth)->header.shape, err);
}

/* Bits of the kinds, for the options of some. */
#define OF(kind) (1u << (kind))
#define AT(field) offsetof(struct synth, field)
static const k3_opt table[] = {
    {"output", 'o', "FILE", "where to write (default: standard output)", K3_OPT_TEXT, AT(out)},
    {"tokens", 'n', "N", "decode positions of each sequence (default: 100)", K3_OPT_U64, AT(tokens), 0, UINT64_C(1) << 40},
    {"prompt", 0, "N", "positions of one prefill step before them (default: 0)", K3_OPT_U64, AT(prompt), 0, K3_TRACE_MAX_ROWS},
    {"sequences", 0, "N", "texts, one after the other (default: 1)", K3_OPT_U64, AT(sequences), 1, 1 << 30},
    {"seed", 0, "N", "of the random numbers (default: 1)", K3_OPT_U64, AT(seed)},
    {"repeat", 0, "R",
     "markov, k3: share of a position's experts that were the\nposition before's (default: 0.5, k3: 0.33)", K3_OPT_DOUBLE,
     AT(repeat), .high = 1, .verbs = OF(MARKOV) | OF(K3)},
    {"skew", 0, "S", "zipf: exponent (default: 1)", K3_OPT_DOUBLE, AT(skew), .high = 10, .verbs = OF(ZIPF)},
    {"discount", 0, "D", "py, markov, k3: 0 to 1, how fast new experts keep coming", K3_OPT_DOUBLE, AT(discount), .high = 0.999,
     .verbs = OF(PY) | OF(MARKOV) | OF(K3)},
    {"theta", 0, "T", "py, markov, k3: how many come at first", K3_OPT_DOUBLE, AT(theta), .high = 1e6,
     .verbs = OF(PY) | OF(MARKOV) | OF(K3)},
    {"model", 'm', "MODEL", "a checkpoint's shape and name, instead of --shape and\n--expert-bytes", K3_OPT_TEXT, AT(model)},
    {"shape", 0, "L,F,E,K", "layers, first layer with experts, experts, experts a\nposition uses (default: 93,1,896,16)",
     K3_OPT_CALL, .take = take_shape},
    {"expert-bytes", 0, "SIZE", "of one expert (default: 17547264)", K3_OPT_SIZE, AT(header.expert_bytes)},
    {"record", 0, "POLICY", "record residency in a cache: lru, layers or lfu", K3_OPT_WORD, AT(record), .words = K3_POLICY_WORDS},
    {"slots", 0, "N", "of that cache", K3_OPT_U64, AT(slots), 0, UINT32_MAX - 1},
    K3_COMMON_OPTS,
    {0},
};

/* What each kind takes, and the values that fit K3's record: unique experts a
 * layer 55, 109, 124, 205 after 5, 12, 17, 40 positions. */
static int complete(struct synth *s, const k3_args *args, k3_err *err)
{
    static const struct {
        double repeat, discount, theta;
    } of[KINDS] = {[PY] = {0, 0.4, 13}, [MARKOV] = {0.5, 0.55, 40}, [K3] = {0.33, 0.55, 40}};
    const char *kind = args->noperands ? args->operands[0] : "k3";
    if (args->noperands > 1)
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many; KIND is the only one", args->operands[1]);
    int found = k3_opt_find(KIND_WORDS, kind);
    if (found < 0)
        return k3_fail(err, K3_EUSAGE, "\"%s\" is none of flat, zipf, py, markov and k3", kind);
    s->kind = (enum kind)found;
    s->name = kind;
    int status = k3_opt_only(args, OF(s->kind), kind, err);
    if (status)
        return status;
    if (s->model && (k3_opt_given(args, "shape") || k3_opt_given(args, "expert-bytes")))
        return k3_fail(err, K3_EUSAGE, "--model says what --shape and --expert-bytes would say");
    if (k3_opt_given(args, "slots") != k3_opt_given(args, "record"))
        return k3_fail(err, K3_EUSAGE, "--record and --slots go together");
    if (!k3_opt_given(args, "repeat"))
        s->repeat = of[s->kind].repeat;
    if (!k3_opt_given(args, "discount"))
        s->discount = of[s->kind].discount;
    if (!k3_opt_given(args, "theta"))
        s->theta = of[s->kind].theta;
    return 0;
}

int cmd_synth(int argc, char **argv, k3_err *err)
{
    struct synth s = {.out = "-",
                      .tokens = 100,
                      .sequences = 1,
                      .seed = 1,
                      .skew = 1,
                      .record = -1,
                      .header = {.shape = K3_SHAPE_DEFAULT, .expert_bytes = K3_EXPERT_BYTES_DEFAULT}};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    bool done;
    int status = k3_opt_parse(&args, &s, &done, err);
    if (status || done)
        return status;
    status = complete(&s, &args, err);
    if (!status && s.model)
        status = model_header(s.model, &s.header, NULL, err);
    return status ? status : run(&s, err);
}
