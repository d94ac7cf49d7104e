/* SPDX-License-Identifier: Apache-2.0 */
/* sim: hit rates by cache policy and size. */
#include "simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: k3-trace sim [-p LIST] [-s LIST] [-u] [-w N|prefill] [-d RATES] [OPTION ...] [TRACE]\n"
    "       k3-trace sim --budget SIZE [-m MODEL | --trunk SIZE] [-d RATE] [TRACE]\n"
    "\n"
    "What expert caches would have hit. A layer's experts are one batch, as the engine asks\n"
    "for them: none of it leaves while it is served.\n";

enum { MAX_RATES = 8 };
#define UNKNOWN UINT64_MAX /* bytes of a trunk that was not given */

struct sim {
    struct sim_job job;
    const char *model, *sizes, *policies;
    double rate[MAX_RATES];
    int rates;
    struct budget budget;
    bool curve, compat;
};

static int parse_rate(const char *text, const char *what, double *rate, k3_err *err)
{
    uint64_t v;
    int status = k3_num_size(text, what, 1, &v, err);
    if (!status && !v)
        status = k3_fail(err, K3_EUSAGE, "%s: the rate must be at least 1 byte a second", what);
    *rate = (double)v;
    return status;
}

static int take_rates(void *opts, const char *text, k3_err *err)
{
    struct sim *s = opts;
    char item[64];
    s->rates = 0;
    while (k3_opt_word(&text, ',', item, sizeof item)) {
        if (s->rates == MAX_RATES)
            return k3_fail(err, K3_EUSAGE, "--disk: more than %d rates", MAX_RATES);
        int status = parse_rate(item, "--disk", &s->rate[s->rates++], err);
        if (status)
            return status;
    }
    return 0;
}

static int take_trunk_rate(void *opts, const char *value, k3_err *err)
{
    return parse_rate(value, "--trunk-disk", &((struct sim *)opts)->budget.trunk_rate, err);
}

static int take_policies(void *opts, const char *value, k3_err *err)
{
    struct sim *s = opts;
    s->policies = value;
    return parse_policies(value, &s->job, err);
}

static int take_warmup(void *opts, const char *value, k3_err *err)
{
    return parse_warmup(value, &((struct sim *)opts)->job.warmup, err);
}

#define AT(field) offsetof(struct sim, field)
static const k3_opt table[] = {
    {"model", 'm', "MODEL", "refuse a trace that is not of this checkpoint, and take\nthe bytes of its trunk", K3_OPT_TEXT, AT(model)},
    {"policy", 'p', "LIST", "of lru, layers, lfu (the engine's), fifo, clock, random,\nslru, 2q, arc, s3fifo, sieve, wtinylfu, pin, belady,\nbelady-bypass; or all (default: lru,layers,lfu,belady-bypass)", K3_OPT_CALL, .words = SIM_POLICY_WORDS "|all", .take = take_policies},
    {"size", 's', "LIST", "slots (455), bytes (8G) or a share of all experts (10%)\n(default: 1/4, 1/2, 1, 3/2, 2, 3, 4, 8 tokens' sets)", K3_OPT_TEXT, AT(sizes)},
    {"unbatched", 'u', NULL, "request by request, as published figures do", K3_OPT_NO_FLAG, AT(job.batched)},
    {"warmup", 'w', "N|prefill", "the first N steps, or all prefill positions, fill the\ncache but are not counted", K3_OPT_CALL, .words = "prefill", .take = take_warmup},
    {"disk", 'd', "LIST", "seconds a token at these disk rates (bytes a second, 3.2G)", K3_OPT_CALL, .take = take_rates},
    {"curve", 'c', NULL, "LRU at every size: lines of slots, hits, hit rate", K3_OPT_FLAG, AT(curve)},
    {"budget", 'b', "SIZE", "the best split of SIZE between pinned trunk and expert cache", K3_OPT_SIZE, AT(budget.bytes), 1},
    {"trunk", 0, "SIZE", "with --budget: bytes of the trunk (default:\nthe model's, or 108.81G, K3's)", K3_OPT_SIZE, AT(budget.trunk)},
    {"trunk-disk", 0, "RATE", "with --budget: rate of the trunk's disk, if it is another", K3_OPT_CALL, .take = take_trunk_rate},
    {"compat", 0, NULL, "the table in the layout of the origin engine's sim_cache.py", K3_OPT_FLAG, AT(compat)},
    {"tsv", 0, NULL, "one line for each policy and size, tab-separated", K3_OPT_FLAG, AT(budget.tsv)},
    {"json", 0, NULL, "the output as JSON", K3_OPT_FLAG, AT(budget.json)},
    {"seed", 0, "N", "of policy random (default: 1)", K3_OPT_U64, AT(job.seed)},
    {"threads", 0, "N", "policies and sizes at once (default: one a core)", K3_OPT_INT, AT(job.threads), 1, 1024},
    K3_COMMON_OPTS,
    {0},
};

static int check(const k3_args *args, const struct sim *s, k3_err *err)
{
    if (k3_opt_one_of(args, "tsv|json", err))
        return err->status;
    if (s->compat + s->curve + (s->budget.bytes > 0) > 1)
        return k3_fail(err, K3_EUSAGE, "--compat, --curve and --budget exclude each other");
    if (s->compat && (s->budget.tsv || s->budget.json || s->policies || s->sizes))
        return k3_fail(err, K3_EUSAGE, "--compat fixes policies, sizes and layout");
    if ((s->curve || s->budget.bytes) && (s->policies || s->sizes))
        return k3_fail(err, K3_EUSAGE, "--%s chooses policies and sizes itself", s->curve ? "curve" : "budget");
    if ((s->budget.trunk != UNKNOWN || s->budget.trunk_rate > 0) && !s->budget.bytes)
        return k3_fail(err, K3_EUSAGE, "--trunk and --trunk-disk go with --budget");
    if ((s->compat || s->budget.bytes) && s->rates > 1)
        return k3_fail(err, K3_EUSAGE, "--disk: at most one rate goes with --compat and --budget");
    return 0;
}

static double percent(uint64_t part, uint64_t of)
{
    return of ? 100.0 * (double)part / (double)of : 0;
}

static double bytes_per_token(const struct outcome *o, uint64_t hits)
{
    return o->tokens ? (double)(o->requests - hits) * (double)o->header.expert_bytes / (double)o->tokens : 0;
}

/* ---- outputs ----------------------------------------------------------------------------- */

static void print_head(const struct sim *s, const struct outcome *o)
{
    uint32_t set = token_slots(&o->header.shape);
    char a[24], b[24];
    printf("%" PRIu64 " requests counted (%s), %" PRIu64 " positions; experts of %s, one token's set %u slots = %s\n",
           o->requests, s->job.batched ? "batched" : "one by one", o->tokens, k3_fmt_bytes(a, o->header.expert_bytes),
           set, k3_fmt_bytes(b, set * o->header.expert_bytes));
    printf("%" PRIu64 " distinct experts; %" PRIu64 " compulsory misses: no cache hits more than %.2f %%\n\n",
           o->distinct, o->first, percent(o->requests - o->first, o->requests));
}

static int column(int kind)
{
    int n = (int)strlen(k3_sim_name(kind));
    return n > 7 ? n : 7;
}

static void print_table(const struct sim *s, const struct outcome *o)
{
    const struct sim_job *job = &s->job;
    bool dead = false;
    const char *name, *rate;
    double unit = unit_of((double)token_slots(&o->header.shape) * (double)o->header.expert_bytes, &name);
    print_head(s, o);
    printf("%10s %7s", "cache", "slots");
    for (int k = 0; k < job->kinds; k++)
        printf(" %*s", column(job->kind[k]), k3_sim_name(job->kind[k]));
    printf("  %s/token", name);
    for (int i = 0; i < s->rates; i++) {
        double rate_unit = unit_of(s->rate[i], &rate);
        printf("  s at %6.2f %s/s", s->rate[i] / rate_unit, rate);
    }
    printf("\n");
    for (int z = 0; z < job->sizes; z++) {
        char size[24];
        double bytes = bytes_per_token(o, hits_at(o, job, 0, z));
        printf("%10s %7u", k3_fmt_bytes(size, job->slots[z] * o->header.expert_bytes), job->slots[z]);
        for (int k = 0; k < job->kinds; k++) {
            uint64_t hits = hits_at(o, job, k, z);
            printf(" %*.2f", column(job->kind[k]), percent(hits, o->requests));
            dead |= job->kind[k] == K3_SIM_LRU && !hits && job->slots[z] && o->requests > o->first &&
                    job->slots[z] < token_slots(&o->header.shape);
        }
        printf("  %8.2f", bytes / unit);
        for (int i = 0; i < s->rates; i++)
            printf("  %16.2f", bytes / s->rate[i]);
        printf("\n");
    }
    printf("\nhit rates in %%; %s/token%s of %s\n", name, s->rates ? " and seconds" : "", k3_sim_name(job->kind[0]));
    if (dead)
        printf("lru hits nothing below one token's set: layers come round in a cycle. layers and lfu do, or\n"
               "give the memory to the trunk (--budget)\n");
}

static void print_tsv(const struct sim *s, const struct outcome *o)
{
    const struct sim_job *job = &s->job;
    printf("policy\tslots\tbytes\trequests\thits\tcompulsory\thit_rate\tbytes_per_token");
    for (int i = 0; i < s->rates; i++)
        printf("\tseconds_at_%.0f", s->rate[i]);
    printf("\n");
    for (int k = 0; k < job->kinds; k++)
        for (int z = 0; z < job->sizes; z++) {
            uint64_t hits = hits_at(o, job, k, z);
            printf("%s\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.6f\t%.0f",
                   k3_sim_name(job->kind[k]), job->slots[z], job->slots[z] * o->header.expert_bytes, o->requests,
                   hits, o->first, percent(hits, o->requests) / 100, bytes_per_token(o, hits));
            for (int i = 0; i < s->rates; i++)
                printf("\t%.4f", bytes_per_token(o, hits) / s->rate[i]);
            printf("\n");
        }
}

static void print_json(const struct sim *s, const struct outcome *o)
{
    const struct sim_job *job = &s->job;
    const char *comma = "";
    printf("{\"batched\":%s,\"requests\":%" PRIu64 ",\"positions\":%" PRIu64 ",\"distinct\":%" PRIu64
           ",\"compulsory\":%" PRIu64 ",\"expert_bytes\":%" PRIu64 ",\"token_slots\":%u,\"results\":[",
           job->batched ? "true" : "false", o->requests, o->tokens, o->distinct, o->first, o->header.expert_bytes,
           token_slots(&o->header.shape));
    for (int k = 0; k < job->kinds; k++)
        for (int z = 0; z < job->sizes; z++, comma = ",") {
            uint64_t hits = hits_at(o, job, k, z);
            printf("%s\n{\"policy\":\"%s\",\"slots\":%u,\"hits\":%" PRIu64
                   ",\"hit_rate\":%.6f,\"bytes_per_token\":%.0f",
                   comma, k3_sim_name(job->kind[k]), job->slots[z], hits, percent(hits, o->requests) / 100,
                   bytes_per_token(o, hits));
            for (int i = 0; i < s->rates; i++)
                printf("%s{\"rate\":%.0f,\"seconds\":%.4f}", i ? "," : ",\"disks\":[", s->rate[i],
                       bytes_per_token(o, hits) / s->rate[i]);
            printf(s->rates ? "]}" : "}");
        }
    printf("\n]}\n");
}

static void print_curve(const struct sim *s, const struct outcome *o)
{
    uint32_t last = 1;
    for (uint32_t d = 1; d <= o->distinct; d++)
        if (k3_curve_distance(o->curve, d))
            last = d;
    if (!s->budget.json)
        printf("slots\thits\thit_rate\n");
    else
        printf("{\"requests\":%" PRIu64 ",\"curve\":[", o->requests);
    for (uint32_t d = 1; d <= last; d++) {
        if (!k3_curve_distance(o->curve, d) && d < last)
            continue; /* as much as one slot less */
        uint64_t hits = k3_curve_hits(o->curve, d);
        printf(s->budget.json ? "%s\n[%u,%" PRIu64 ",%.6f]" : "%s%u\t%" PRIu64 "\t%.6f\n",
               s->budget.json && d > 1 && hits > k3_curve_distance(o->curve, d) ? "," : "", d, hits,
               percent(hits, o->requests) / 100);
    }
    if (s->budget.json)
        printf("\n]}\n");
}

/* ---- the origin's table --------------------------------------------------------------------- */

static void set_compat(struct sim_job *job, const k3_trace_header *h)
{
    static const int gb[] = {8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1450};
    job->kinds = 3;
    job->kind[0] = K3_SIM_LRU;
    job->kind[1] = K3_SIM_BELADY;
    job->kind[2] = K3_SIM_PIN;
    job->sizes = 0;
    for (size_t i = 0; i < sizeof gb / sizeof *gb; i++)
        job->slots[job->sizes++] = (uint32_t)((uint64_t)gb[i] * 1000000000 / h->expert_bytes);
}

static void print_compat(const struct sim *s, const struct outcome *o)
{
    static const int gb[] = {8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024, 1450};
    const struct sim_job *job = &s->job;
    const k3_shape *shape = &o->header.shape;
    double rate = s->rates ? s->rate[0] : 1234e6, size = (double)o->header.expert_bytes;
    double pool = (double)(shape->layers - shape->first) * shape->experts;
    uint64_t set = token_slots(shape), tokens = o->requests / set ? o->requests / set : 1;
    printf("trace: %" PRIu64 " requests, %" PRIu64 " distinct experts, about %" PRIu64 " token(s)\n", o->requests,
           o->distinct, tokens);
    printf("distinct experts touched: %" PRIu64 " of %.0f (%.2f%% of the pool)\n", o->distinct, pool,
           100 * (double)o->distinct / pool);
    printf("if nothing were cached: %.2f GB per token\n", (double)set * size / 1e9);
    printf("total reuse: %" PRIu64 " of %" PRIu64 " requests are repeats (%.1f%%)\n\n", o->requests - o->distinct,
           o->requests, percent(o->requests - o->distinct, o->requests));
    printf("%-9s %8s %9s %9s %9s %12s %11s\n", "CACHE", "SLOTS", "LRU", "BELADY", "PIN+LRU", "GB READ/TOK",
           "SEC/TOK");
    for (int z = 0; z < job->sizes; z++) {
        char cache[24];
        if (job->slots[z] < 17)
            continue;
        double read = (double)(o->requests - hits_at(o, job, 0, z)) * size / (double)tokens;
        snprintf(cache, sizeof cache, "%d GB", gb[z]);
        printf("%-9s %8u %8.2f%% %8.2f%% %8.2f%% %12.2f %11.2f\n", cache, job->slots[z],
               percent(hits_at(o, job, 0, z), o->requests), percent(hits_at(o, job, 1, z), o->requests),
               percent(hits_at(o, job, 2, z), o->requests), read / 1e9, read / rate);
    }
    printf("\ncompulsory misses: %" PRIu64 ", a ceiling of %.2f%% for any policy at any size\n", o->distinct,
           percent(o->requests - o->distinct, o->requests));
    printf("holding every expert this trace touched needs %.2f GB\n", (double)o->distinct * size / 1e9);
}

/* ---- the story --------------------------------------------------------------------------------- */

static void default_sizes(struct sim_job *job, const k3_shape *shape)
{
    static const int quarters[] = {1, 2, 4, 6, 8, 12, 16, 32};
    uint64_t pool = (uint64_t)(shape->layers - shape->first) * (uint64_t)shape->experts;
    job->sizes = 0;
    for (size_t i = 0; i < sizeof quarters / sizeof *quarters; i++) {
        uint64_t slots = (uint64_t)token_slots(shape) * (uint64_t)quarters[i] / 4;
        if (slots > pool)
            slots = pool;
        if (!job->sizes || slots > job->slots[job->sizes - 1])
            job->slots[job->sizes++] = (uint32_t)slots;
    }
}

static int run_budget(struct sim *s, k3_trace_reader *r, k3_err *err)
{
    const k3_shape *shape = &k3_trace_info(r)->shape, k3 = K3_SHAPE_DEFAULT;
    s->budget.expert_rate = s->rates ? s->rate[0] : 3.2e9;
    if (s->budget.trunk_rate <= 0)
        s->budget.trunk_rate = s->budget.expert_rate;
    if (s->budget.trunk == UNKNOWN) {
        if (memcmp(shape, &k3, sizeof k3))
            return k3_fail(err, K3_EUSAGE, "%s: not of K3's shape: give its trunk with --trunk SIZE or -m MODEL",
                           k3_trace_name(r));
        s->budget.trunk = (uint64_t)K3_TRUNK_BYTES_DEFAULT;
    }
    return print_budget(r, &s->job, &s->budget, err);
}

static int run(struct sim *s, k3_trace_reader *r, k3_err *err)
{
    struct sim_job *job = &s->job;
    const k3_trace_header *h = k3_trace_info(r);
    struct outcome o;
    int status = check_model(s->model, r, s->budget.trunk != UNKNOWN ? NULL : &s->budget.trunk, err);
    if (status)
        return status;
    if (s->budget.bytes)
        return run_budget(s, r, err);
    if (s->compat)
        set_compat(job, h);
    else if (s->curve)
        job->kinds = job->sizes = 0;
    else if (s->sizes)
        status = parse_sizes(s->sizes, h, job, err);
    else
        default_sizes(job, &h->shape);
    if (!status)
        status = simulate(r, job, &o, err);
    if (status)
        return status;
    if (s->compat)
        print_compat(s, &o);
    else if (s->curve)
        print_curve(s, &o);
    else if (s->budget.tsv)
        print_tsv(s, &o);
    else if (s->budget.json)
        print_json(s, &o);
    else
        print_table(s, &o);
    outcome_free(&o);
    return 0;
}

int cmd_sim(int argc, char **argv, k3_err *err)
{
    static struct sim s;
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    k3_trace_reader *r;
    bool done;
    s = (struct sim){.job = {.batched = true, .seed = 1, .threads = k3_threads_default()}, .budget.trunk = UNKNOWN};
    parse_policies("lru,layers,lfu,belady-bypass", &s.job, err);
    int status = k3_opt_parse(&args, &s, &done, err);
    if (status || done)
        return status;
    s.job.batched &= !s.compat;
    status = check(&args, &s, err);
    if (!status)
        status = open_operand(&args, &r, err);
    if (status)
        return status;
    status = run(&s, r, err);
    k3_trace_free(r);
    return status;
}
