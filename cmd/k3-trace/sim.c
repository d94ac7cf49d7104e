/* sim: hit rates by cache policy and size. */
#include "simulate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_POLICY = 1,
    OPT_SIZE,
    OPT_UNBATCHED,
    OPT_WARMUP,
    OPT_DISK,
    OPT_CURVE,
    OPT_BUDGET,
    OPT_TRUNK,
    OPT_TRUNK_DISK,
    OPT_COMPAT,
    OPT_TSV,
    OPT_JSON,
    OPT_SEED,
    OPT_THREADS,
    OPT_MODEL
};

static const k3_opt table[] = {
    {"model", 'm', "MODEL", OPT_MODEL,
     "refuse a trace that is not of this checkpoint, and take\nthe bytes of its trunk"},
    {"policy", 'p', "LIST", OPT_POLICY,
     "of lru, layers, lfu (the engine's), fifo, clock, random,\n"
     "slru, 2q, arc, s3fifo, sieve, wtinylfu, pin, belady,\n"
     "belady-bypass; or all (default: lru,layers,lfu,belady-bypass)"},
    {"size", 's', "LIST", OPT_SIZE,
     "slots (455), bytes (8G) or a share of all experts (10%)\n(default: 1/4, 1/2, 1, 3/2, 2, 3, 4, 8 tokens' sets)"},
    {"unbatched", 'u', NULL, OPT_UNBATCHED, "request by request, as published figures do"},
    {"warmup", 'w', "N|prefill", OPT_WARMUP,
     "the first N steps, or all prefill positions, fill the\ncache but are not counted"},
    {"disk", 'd', "LIST", OPT_DISK, "seconds a token at these disk rates (bytes a second, 3.2G)"},
    {"curve", 'c', NULL, OPT_CURVE, "LRU at every size: lines of slots, hits, hit rate"},
    {"budget", 'b', "SIZE", OPT_BUDGET, "the best split of SIZE between pinned trunk and expert cache"},
    {"trunk", 0, "SIZE", OPT_TRUNK, "with --budget: bytes of the trunk (default:\nthe model's, or 108.81G, K3's)"},
    {"trunk-disk", 0, "RATE", OPT_TRUNK_DISK, "with --budget: rate of the trunk's disk, if it is another"},
    {"compat", 0, NULL, OPT_COMPAT, "the table in the layout of the origin engine's sim_cache.py"},
    {"tsv", 0, NULL, OPT_TSV, "one line for each policy and size, tab-separated"},
    {"json", 0, NULL, OPT_JSON, "the output as JSON"},
    {"seed", 0, "N", OPT_SEED, "of policy random (default: 1)"},
    {"threads", 0, "N", OPT_THREADS, "policies and sizes at once (default: one a core)"},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] =
    "usage: k3-trace sim [-p LIST] [-s LIST] [-u] [-w N|prefill] [-d RATES] [OPTION ...] [TRACE]\n"
    "       k3-trace sim --budget SIZE [-m MODEL | --trunk SIZE] [-d RATE] [TRACE]\n"
    "\n"
    "What expert caches would have hit. A layer's experts are one batch, as the engine asks\n"
    "for them: none of it leaves while it is served.\n";

enum { MAX_RATES = 8 };

struct sim {
    struct job job;
    const char *model, *sizes, *policies;
    double rate[MAX_RATES];
    int rates;
    struct budget budget;
    bool curve, compat, tsv, json, trunk_given, trunk_disk_given;
};

static int parse_rate(const char *text, const char *what, double *rate, k3_err *err)
{
    uint64_t v;
    int status = k3_num_size(text, what, 1, &v, err);
    if (!status && !v)
        status = k3_fail(err, K3_EUSAGE, "%s: a rate of 0 bytes a second", what);
    *rate = (double)v;
    return status;
}

static int parse_rates(const char *text, struct sim *s, k3_err *err)
{
    char item[64];
    s->rates = 0;
    while (next_item(&text, item, sizeof item)) {
        if (s->rates == MAX_RATES)
            return k3_fail(err, K3_EUSAGE, "--disk: more than %d rates", MAX_RATES);
        int status = parse_rate(item, "--disk", &s->rate[s->rates++], err);
        if (status)
            return status;
    }
    return 0;
}

static int take_option(struct sim *s, int id, const char *value, k3_err *err)
{
    int status = 0;
    switch (id) {
    case OPT_MODEL:
        s->model = value;
        return 0;
    case OPT_POLICY:
        s->policies = value;
        return parse_policies(value, &s->job, err);
    case OPT_SIZE:
        s->sizes = value;
        return 0;
    case OPT_UNBATCHED:
        s->job.batched = false;
        return 0;
    case OPT_WARMUP:
        return parse_warmup(value, &s->job.warmup, err);
    case OPT_DISK:
        return parse_rates(value, s, err);
    case OPT_CURVE:
        s->curve = true;
        return 0;
    case OPT_BUDGET:
        status = k3_num_size(value, "--budget", 1, &s->budget.bytes, err);
        if (!status && !s->budget.bytes)
            status = k3_fail(err, K3_EUSAGE, "--budget: there is nothing to split in 0 bytes");
        return status;
    case OPT_TRUNK:
        s->trunk_given = true;
        return k3_num_size(value, "--trunk", 1, &s->budget.trunk, err);
    case OPT_TRUNK_DISK:
        s->trunk_disk_given = true;
        return parse_rate(value, "--trunk-disk", &s->budget.trunk_rate, err);
    case OPT_COMPAT:
        s->compat = true;
        s->job.batched = false;
        return 0;
    case OPT_TSV:
        s->tsv = true;
        return 0;
    case OPT_JSON:
        s->json = true;
        return 0;
    case OPT_SEED:
        return k3_num_u64(value, "--seed", 0, UINT64_MAX, &s->job.seed, err);
    default:
        return k3_opt_threads(value, &s->job.threads, err);
    }
}

static int check(const struct sim *s, k3_err *err)
{
    if (s->tsv && s->json)
        return k3_fail(err, K3_EUSAGE, "--tsv and --json exclude each other");
    if (s->compat + s->curve + (s->budget.bytes > 0) > 1)
        return k3_fail(err, K3_EUSAGE, "--compat, --curve and --budget exclude each other");
    if (s->compat && (s->tsv || s->json || s->policies || s->sizes))
        return k3_fail(err, K3_EUSAGE, "--compat fixes policies, sizes and layout");
    if ((s->curve || s->budget.bytes) && (s->policies || s->sizes))
        return k3_fail(err, K3_EUSAGE, "--%s chooses policies and sizes itself", s->curve ? "curve" : "budget");
    if ((s->trunk_given || s->trunk_disk_given) && !s->budget.bytes)
        return k3_fail(err, K3_EUSAGE, "--trunk and --trunk-disk go with --budget");
    if ((s->compat || s->budget.bytes) && s->rates > 1)
        return k3_fail(err, K3_EUSAGE, "--disk: one rate is enough here");
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
    const struct job *job = &s->job;
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
    const struct job *job = &s->job;
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
    const struct job *job = &s->job;
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
    if (!s->json)
        printf("slots\thits\thit_rate\n");
    else
        printf("{\"requests\":%" PRIu64 ",\"curve\":[", o->requests);
    for (uint32_t d = 1; d <= last; d++) {
        if (!k3_curve_distance(o->curve, d) && d < last)
            continue; /* as much as one slot less */
        uint64_t hits = k3_curve_hits(o->curve, d);
        printf(s->json ? "%s\n[%u,%" PRIu64 ",%.6f]" : "%s%u\t%" PRIu64 "\t%.6f\n",
               s->json && d > 1 && hits > k3_curve_distance(o->curve, d) ? "," : "", d, hits,
               percent(hits, o->requests) / 100);
    }
    if (s->json)
        printf("\n]}\n");
}

/* ---- the origin's table --------------------------------------------------------------------- */

static void set_compat(struct job *job, const k3_trace_header *h)
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
    const struct job *job = &s->job;
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

static void default_sizes(struct job *job, const k3_shape *shape)
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
    if (!s->trunk_disk_given)
        s->budget.trunk_rate = s->budget.expert_rate;
    if (!s->trunk_given && !s->model) {
        if (memcmp(shape, &k3, sizeof k3))
            return k3_fail(err, K3_EUSAGE, "%s: not of K3's shape: give its trunk with --trunk SIZE or -m MODEL",
                           k3_trace_name(r));
        s->budget.trunk = (uint64_t)K3_TRUNK_BYTES_DEFAULT;
    }
    s->budget.json = s->json;
    s->budget.tsv = s->tsv;
    return print_budget(r, &s->job, &s->budget, err);
}

static int run(struct sim *s, k3_trace_reader *r, k3_err *err)
{
    struct job *job = &s->job;
    const k3_trace_header *h = k3_trace_info(r);
    struct outcome o;
    int status = check_model(s->model, r, s->trunk_given ? NULL : &s->budget.trunk, err);
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
    else if (s->tsv)
        print_tsv(s, &o);
    else if (s->json)
        print_json(s, &o);
    else
        print_table(s, &o);
    outcome_free(&o);
    return 0;
}

int cmd_sim(int argc, char **argv, k3_err *err)
{
    static struct sim s;
    k3_args args = {.argc = argc, .argv = argv, .table = table};
    k3_trace_reader *r;
    int id, status = 0;
    s = (struct sim){.job = {.batched = true, .seed = 1, .threads = k3_threads_default()}};
    parse_policies("lru,layers,lfu,belady-bypass", &s.job, err);
    while (!status && (id = k3_opt_next(&args, err)) != K3_OPT_DONE) {
        if (common_option(id, usage, table, err, &status))
            return status;
        status = take_option(&s, id, args.value, err);
    }
    if (!status)
        status = check(&s, err);
    if (!status)
        status = open_operand(&args, &r, err);
    if (status)
        return status;
    status = run(&s, r, err);
    k3_trace_free(r);
    return status;
}
