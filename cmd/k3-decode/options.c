/* The command line of k3-decode. */
#include "options.h"
#include "k3_model.h"
#include "k3_cache.h"
#include "stream/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    O_MODEL = 1, O_INDEX, O_TRUNK, O_GEN, O_LAYERS, O_STOP, O_LOGITS, O_REPORT, O_THREADS, O_CHUNK, O_CONTEXT,
    O_MEMORY, O_PRESET, O_LIST, O_TRUNK_GB, O_CACHE_GB, O_POLICY, O_AHEAD, O_PLAN, O_JSON, O_RATE, O_LIMIT,
    O_BATCH, O_DRAFT, O_TEMPERATURE, O_TOP_K, O_TOP_P, O_MIN_P, O_SEED, O_LOGPROBS, O_STREAM, O_SCORE, O_SCORE_NPY,
    O_PERPLEXITY, O_SAVE, O_LOAD, O_TRACE,
    O_TILE, O_RING, O_DEPTH, O_DIRECT, O_HUGE, O_SPILL, O_SCRATCH, O_SLOW
};

static const char usage[] =
    "usage: k3-decode [-m MODEL] [options] < prompts\n"
    "       k3-decode [-m MODEL] [options] --score|--perplexity < texts\n"
    "       k3-decode [-m MODEL] [options] --plan\n"
    "       k3-decode state [--json] FILE\n"
    "\n"
    "Reads one prompt a line as decimal ids, continues it and writes the ids, each as\n"
    "soon as it is known, one line for each prompt. The ids do not depend on how much\n"
    "memory is given, nor on what other lines there are.\n";

static const k3_opt table[] = {
    {"model", 'm', "MODEL", O_MODEL, "the checkpoint folder (default: $K3_MODEL)"},
    {"index", 0, "FILE", O_INDEX, "its index (default: MODEL/k3.index)"},
    {"trunk", 0, "FILE", O_TRUNK, "packed trunk (default: MODEL/k3.trunk if it is there; \"none\": from the shards)"},
    {"gen", 'n', "N", O_GEN, "ids to generate after each prompt (default: 8; 0 only reads it)"},
    {"stop-id", 0, "ID", O_STOP, "end a sequence after this id, repeatable; \"none\" for never\n"
                                 "(default: the end ids of config and tokenizer)"},
    {"temperature", 0, "T", O_TEMPERATURE, "draw from the distribution at that temperature (default: 0, greedy)"},
    {"top-k", 0, "N", O_TOP_K, "draw among the N likeliest ids"},
    {"min-p", 0, "P", O_MIN_P, "leave out ids less likely than P times the likeliest"},
    {"top-p", 0, "P", O_TOP_P, "draw among the fewest ids that together have that probability"},
    {"seed", 0, "N", O_SEED, "of the draw (default: 0)"},
    {"batch", 0, "N", O_BATCH, "lines decoded together at most (default: 32 if memory allows)"},
    {"draft", 0, "N", O_DRAFT, "guess up to N ids ahead where the text repeats itself, and verify them\n"
                               "in one pass; the output does not change (default: 0)"},
    {"stream-json", 0, NULL, O_STREAM, "write a JSON line for every id as it comes, of all lines"},
    {"logprobs", 0, "FILE", O_LOGPROBS, "write line, index, id and log-probability of every id, TSV"},
    {"score", 0, NULL, O_SCORE, "generate nothing: write line, position, id, log-probability, rank and\n"
                                "argmax for every id but the first of a line, TSV"},
    {"score-npy", 0, "FILE", O_SCORE_NPY, "the last three of these as float64 [ids, 3] .npy"},
    {"perplexity", 0, NULL, O_PERPLEXITY, "generate nothing: write mean negative log-likelihood, its standard\n"
                                          "error and the perplexity"},
    {"save-state", 0, "FILE", O_SAVE, "write the state after the line, to go on from"},
    {"load-state", 0, "FILE", O_LOAD, "go on from it: the line's ids follow those of the file"},
    {"trace", 0, "FILE", O_TRACE, "record which experts were chosen, for k3-trace; \"-\" for standard output"},
    {"layers", 0, "N", O_LAYERS, "run the first N layers only, then norm and head"},
    {"logits", 0, "FILE", O_LOGITS, "write the logits of every position fed, float32 [rows, vocab] .npy"},
    {"report", 0, "FILE", O_REPORT, "write a JSON report of the run"},
    {"threads", 't', "N", O_THREADS, "compute threads (default: the physical cores at hand)"},
    {"memory", 'M', "SIZE", O_MEMORY, "memory to use in all, such as 256M or 24G (default: 8G, or less\n"
                                      "if nine tenths of what is free is less)"},
    {"preset", 'p', "NAME", O_PRESET, "sizes by name, see --list-presets"},
    {"list-presets", 0, NULL, O_LIST, "print the presets and exit"},
    {"trunk-gb", 0, "GB", O_TRUNK_GB, "keep that much of trunk and head in memory"},
    {"cache-gb", 0, "GB", O_CACHE_GB, "keep that much of routed experts in memory"},
    {"cache-policy", 0, "NAME", O_POLICY, "which experts stay: lru, layers or lfu (default: layers)"},
    {"lookahead", 0, "N", O_AHEAD, "read up to N experts of a layer before its router has chosen, by a guess\n"
                                   "(default: as many as pay, none where the disk is busy anyway)"},
    {"plan", 0, NULL, O_PLAN, "print where memory goes and what a token reads, and exit"},
    {"json", 0, NULL, O_JSON, "print the plan or the presets as JSON"},
    {"disk-rate", 0, "RATE", O_RATE, "plan for a device of that many bytes a second instead of measuring;\n"
                                     "TRUNK,EXPERTS for two devices"},
    {"mem-limit", 0, "SIZE", O_LIMIT, "plan for a machine with that much memory to use"},
    {"context", 0, "N", O_CONTEXT, "plan for at least N positions a sequence"},
    {"chunk", 0, "N", O_CHUNK, "prompt tokens in one pass over the weights (default: as memory allows)"},
    {"tile", 0, "SIZE", O_TILE, "largest piece of a matrix read at once (default: 4Mi, less if memory is short)"},
    {"ring", 0, "N", O_RING, "tile buffers, at least 2 (default: as memory allows)"},
    {"io-depth", 0, "N", O_DEPTH, "reads in flight (default: 8, fewer if memory is short or that is faster)"},
    {"direct", 0, "on|off", O_DIRECT, "read past the page cache (default: on)"},
    {"huge", 0, "on|off", O_HUGE, "ask for huge pages (default: on)"},
    {"spill", 0, "on|off", O_SPILL, "keep the KDA state in a scratch file (default: if memory is short)"},
    {"scratch", 0, "DIR", O_SCRATCH, "folder of the scratch file, on a disk (default: $TMPDIR or /var/tmp)"},
    {"slow-reads", 0, "US", O_SLOW, "delay every read by that many microseconds, for tests"},
    K3_COMMON_OPTS,
    {0},
};

static int add_stop(struct options *o, const char *text, k3_err *err)
{
    uint64_t id;
    o->stops_given = true;
    if (!strcmp(text, "none"))
        return 0;
    int status = k3_num_u64(text, "--stop-id", 0, UINT32_MAX, &id, err);
    if (!status && o->nstops == MAX_STOPS)
        status = k3_fail(err, K3_EUSAGE, "--stop-id: more than %d ids", MAX_STOPS);
    if (!status)
        o->stops[o->nstops++] = (uint32_t)id;
    return status;
}

static int size_gb(const char *value, const char *what, int64_t *out, k3_err *err)
{
    uint64_t n;
    int status = k3_num_size(value, what, 1000000000, &n, err);
    if (!status && n > INT64_MAX)
        status = k3_fail(err, K3_EUSAGE, "%s: \"%s\" is too large", what, value);
    if (!status)
        *out = (int64_t)n;
    return status;
}

/* RATE or TRUNK,EXPERTS. */
static int rates(struct options *o, const char *value, k3_err *err)
{
    char first[64];
    const char *comma = strchr(value, ',');
    size_t n = comma ? (size_t)(comma - value) : strlen(value);
    snprintf(first, sizeof first, "%.*s", (int)(n < 63 ? n : 63), value);
    int status = k3_num_size(first, "--disk-rate", 1, &o->disk_rate, err);
    if (!status)
        status = k3_num_size(comma ? comma + 1 : first, "--disk-rate", 1, &o->expert_rate, err);
    if (!status && (!o->disk_rate || !o->expert_rate))
        status = k3_fail(err, K3_EUSAGE, "--disk-rate: \"%s\" is no rate", value);
    return status;
}

static int preset(struct options *o, const char *name, k3_err *err)
{
    if (options_preset(o, name))
        return 0;
    return k3_fail(err, K3_EUSAGE, "--preset: \"%s\" is none of those that --list-presets prints", name);
}

static int policy(struct options *o, const char *name, k3_err *err)
{
    o->policy = k3_policy_kind(name);
    if (o->policy < 0)
        return k3_fail(err, K3_EUSAGE, "--cache-policy: \"%s\" is none of lru, layers, lfu", name);
    return 0;
}

/* A size inside low..high, or K3_EUSAGE. */
static int size_within(const char *value, const char *what, uint64_t low, uint64_t high, const char *range, uint64_t *out,
                       k3_err *err)
{
    int status = k3_num_size(value, what, 1, out, err);
    if (!status && (*out < low || *out > high))
        status = k3_fail(err, K3_EUSAGE, "%s: \"%s\" is outside %s", what, value, range);
    return status;
}

/* Options that choose or judge ids. */
static int take_choice(struct options *o, int id, const char *value, k3_err *err)
{
    switch (id) {
    case O_BATCH:
        return k3_num_u64(value, "--batch", 1, MAX_BATCH, &o->batch, err);
    case O_DRAFT:
        return k3_num_u64(value, "--draft", 0, K3_DRAFT_MAX - 1, &o->draft, err);
    case O_TEMPERATURE:
        return k3_num_double(value, "--temperature", 0, 1000, &o->temperature, err);
    case O_TOP_K:
        return k3_num_u64(value, "--top-k", 1, UINT32_MAX, &o->top_k, err);
    case O_TOP_P:
        return k3_num_double(value, "--top-p", 0, 1, &o->top_p, err);
    case O_MIN_P:
        return k3_num_double(value, "--min-p", 0, 1, &o->min_p, err);
    case O_SEED:
        return k3_num_u64(value, "--seed", 0, UINT64_MAX, &o->seed, err);
    case O_LOGPROBS:
        o->logprobs = value;
        return 0;
    case O_STREAM:
        o->stream_json = true;
        return 0;
    case O_SCORE:
        o->score = true;
        return 0;
    case O_SCORE_NPY:
        o->score_npy = value;
        return 0;
    case O_PERPLEXITY:
        o->perplexity = true;
        return 0;
    case O_SAVE:
        o->save_state = value;
        return 0;
    case O_LOAD:
        o->load_state = value;
        return 0;
    default:
        o->trace = value;
        return 0;
    }
}

/* Options that say what to compute. */
static int take_run(struct options *o, int id, const char *value, k3_err *err)
{
    switch (id) {
    case O_MODEL:
        o->model = value;
        return 0;
    case O_INDEX:
        o->index = value;
        return 0;
    case O_TRUNK:
        o->trunk = value;
        return 0;
    case O_GEN:
        return k3_num_u64(value, "--gen", 0, 1 << 30, &o->gen, err);
    case O_LAYERS:
        return k3_num_u64(value, "--layers", 1, K3_MAX_LAYERS, &o->layers, err);
    case O_STOP:
        return add_stop(o, value, err);
    case O_LOGITS:
        o->logits = value;
        return 0;
    case O_REPORT:
        o->report = value;
        return 0;
    default:
        return k3_opt_threads(value, &o->threads, err);
    }
}

/* Options that say how: none of them changes an id. */
static int take_how(struct options *o, int id, const char *value, k3_err *err)
{
    bool on;
    uint64_t n;
    int status;
    switch (id) {
    case O_CHUNK:
        return k3_num_u64(value, "--chunk", 1, 1 << 20, &o->chunk, err);
    case O_CONTEXT:
        return k3_num_u64(value, "--context", 1, 1 << 30, &o->context, err);
    case O_MEMORY:
        o->trunk_bytes = o->cache_bytes = -1;
        o->spill = o->spill_given ? o->spill : -1;
        return size_within(value, "--memory", 1, UINT64_MAX, "what can be had", &o->memory, err);
    case O_PRESET:
        return preset(o, value, err);
    case O_TRUNK_GB:
        return size_gb(value, "--trunk-gb", &o->trunk_bytes, err);
    case O_CACHE_GB:
        return size_gb(value, "--cache-gb", &o->cache_bytes, err);
    case O_POLICY:
        return policy(o, value, err);
    case O_AHEAD:
        status = k3_num_u64(value, "--lookahead", 0, UINT16_MAX, &n, err);
        o->lookahead = (int64_t)n;
        return status;
    case O_RATE:
        return rates(o, value, err);
    case O_LIMIT:
        return size_within(value, "--mem-limit", 1, UINT64_MAX, "what can be had", &o->mem_limit, err);
    case O_TILE:
        return size_within(value, "--tile", 4096, 1 << 30, "4Ki..1Gi", &o->tile, err);
    case O_RING:
        return k3_num_u64(value, "--ring", 2, 4096, &o->ring, err);
    case O_DEPTH:
        return k3_num_u64(value, "--io-depth", 1, 256, &o->io_depth, err);
    case O_DIRECT:
        return k3_opt_on_off(value, "--direct", &o->direct, err);
    case O_HUGE:
        return k3_opt_on_off(value, "--huge", &o->huge, err);
    case O_SPILL:
        status = k3_opt_on_off(value, "--spill", &on, err);
        o->spill = on;
        o->spill_given = true;
        return status;
    case O_SCRATCH:
        o->scratch = value;
        return 0;
    case O_SLOW:
        return k3_num_u64(value, "--slow-reads", 0, 10000000, &o->slow_us, err);
    case O_PLAN:
        o->plan = true;
        return 0;
    case O_LIST:
        o->list_presets = true;
        return 0;
    default:
        o->json = true;
        return 0;
    }
}

bool options_preset(struct options *o, const char *name)
{
    const struct preset *p = plan_presets;
    while (p->name && strcmp(p->name, name))
        p++;
    if (!p->name)
        return false;
    bool ultra = !strcmp(name, "ultra"), automatic = p->trunk_gb < 0;
    o->trunk_bytes = automatic ? -1 : (int64_t)(p->trunk_gb * 1e9);
    o->cache_bytes = automatic ? -1 : (int64_t)(p->cache_gb * 1e9);
    o->memory = ultra ? ULTRA_BYTES : UINT64_MAX; /* all that is free bounds the others */
    if (!o->spill_given)
        o->spill = ultra ? 1 : -1;
    return true;
}

static int take(void *arg, int id, const char *value, k3_err *err)
{
    struct options *o = arg;
    if (id >= O_BATCH && id <= O_TRACE)
        return take_choice(o, id, value, err);
    return (id <= O_THREADS ? take_run : take_how)(o, id, value, err);
}

/* What does not go together. */
static int check(const struct options *o, k3_err *err)
{
    bool judged = o->score || o->perplexity || o->score_npy;
    if (o->score && o->perplexity)
        return k3_fail(err, K3_EUSAGE, "--score and --perplexity both write to standard output");
    if (judged && (o->stream_json || o->logprobs || o->save_state))
        return k3_fail(err, K3_EUSAGE, "scoring generates nothing for --stream-json, --logprobs or --save-state");
    if (o->stream_json && o->trace && !strcmp(o->trace, "-"))
        return k3_fail(err, K3_EUSAGE, "--stream-json and --trace - both write to standard output");
    return 0;
}

/* `k3-decode state FILE`, or no operand at all. */
static int operands(struct options *o, const k3_args *a, k3_err *err)
{
    bool state = a->noperands && !strcmp(a->operands[0], "state");
    if (state && a->noperands == 2)
        o->describe = a->operands[1];
    else if (state)
        return k3_fail(err, K3_EUSAGE, "state: needs one file");
    else if (a->noperands)
        return k3_fail(err, K3_EUSAGE, "%s: unexpected argument; prompts come on standard input", a->operands[0]);
    int status = state ? 0 : k3_opt_model(&o->model, err);
    return status ? status : check(o, err);
}

int options_parse(struct options *o, int argc, char **argv)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table};
    k3_err err = {0};
    bool done;
    *o = (struct options){.gen = 8, .top_p = 1, .trunk_bytes = -1, .cache_bytes = -1, .lookahead = -1, .spill = -1,
                          .policy = K3_POLICY_LAYERS, .direct = true, .huge = true};
    if (k3_opt_all(&args, usage, take, o, NULL, &done, &err))
        return k3_report_error(&err) + 1;
    if (done)
        return 1;
    if (o->list_presets) {
        plan_list_presets(o->json);
        return 1;
    }
    if (operands(o, &args, &err))
        return k3_report_error(&err) + 1;
    if (o->score || o->perplexity || o->score_npy)
        o->gen = 0;
    if (!o->threads)
        o->threads = k3_threads_default();
    if (!o->scratch)
        o->scratch = getenv("TMPDIR") ? getenv("TMPDIR") : "/var/tmp";
    return 0;
}
