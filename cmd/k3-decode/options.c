/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of k3-decode. */
#include "options.h"
#include "k3_model.h"
#include "k3_cache.h"
#include "stream/stream.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: k3-decode [-m MODEL] [options] < prompts\n"
    "       k3-decode [-m MODEL] [options] --score|--perplexity < texts\n"
    "       k3-decode [-m MODEL] [options] --plan\n"
    "       k3-decode [-m MODEL] [options] --converse < turns\n"
    "       k3-decode state [--json] [--ids] FILE\n"
    "\n"
    "Reads one prompt a line as decimal ids, continues it and writes the ids, each as\n"
    "soon as it is known, one line for each prompt. The ids do not depend on how much\n"
    "memory is given, nor on what other lines there are.\n";

static int add_stop(void *opts, const char *text, k3_err *err)
{
    struct options *o = opts;
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

static int gen(void *opts, const char *text, k3_err *err)
{
    struct options *o = opts;
    if (strcmp(text, "max"))
        return k3_num_u64(text, "--gen", 0, 1 << 30, &o->gen, err);
    o->gen = GEN_MAX;
    return 0;
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

static int trunk_gb(void *opts, const char *value, k3_err *err)
{
    return size_gb(value, "--trunk-gb", &((struct options *)opts)->trunk_bytes, err);
}

static int cache_gb(void *opts, const char *value, k3_err *err)
{
    return size_gb(value, "--cache-gb", &((struct options *)opts)->cache_bytes, err);
}

/* RATE or TRUNK,EXPERTS. */
static int rates(void *opts, const char *value, k3_err *err)
{
    struct options *o = opts;
    char first[64];
    const char *comma = strchr(value, ',');
    size_t n = comma ? (size_t)(comma - value) : strlen(value);
    snprintf(first, sizeof first, "%.*s", (int)(n < 63 ? n : 63), value);
    int status = k3_num_size(first, "--disk-rate", 1, &o->disk_rate, err);
    if (!status)
        status = k3_num_size(comma ? comma + 1 : first, "--disk-rate", 1, &o->expert_rate, err);
    if (!status && (!o->disk_rate || !o->expert_rate))
        status = k3_fail(err, K3_EUSAGE, "--disk-rate: \"%s\" is no rate: more than 0 bytes a second", value);
    return status;
}

/* Takes back what a preset said before it. */
static int memory(void *opts, const char *value, k3_err *err)
{
    struct options *o = opts;
    o->trunk_bytes = o->cache_bytes = -1;
    o->spill = o->spill_given ? o->spill : -1;
    return k3_num_size_within(value, "--memory", 1, UINT64_MAX, &o->memory, err);
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

/* auto, or HINT[,BYTES[,STREAMS]]. */
static int prefetch(void *opts, const char *value, k3_err *err)
{
    struct options *o = opts;
    char text[64], *rest = text;
    snprintf(text, sizeof text, "%s", value);
    const char *hint = strsep(&rest, ","), *distance = strsep(&rest, ",");
    uint64_t bytes = 0, streams = 0;
    o->prefetch_given = strcmp(value, "auto") != 0;
    const int found = o->prefetch_given ? k3_opt_find("none|t0|nta", hint) : 0;
    if (found < 0)
        return k3_fail(err, K3_EUSAGE, "--prefetch: \"%s\" is none of auto, none, t0 and nta, with [,BYTES[,STREAMS]]", value);
    int status = distance ? k3_num_size_within(distance, "--prefetch", 1, 1 << 20, &bytes, err) : 0;
    if (!status && rest)
        status = k3_num_u64(rest, "--prefetch", 1, 8, &streams, err);
    o->prefetch = (k3_reading){(k3_hint)found, (uint32_t)bytes, (uint32_t)streams};
    return status;
}

static int preset(void *opts, const char *name, k3_err *err)
{
    if (options_preset(opts, name))
        return 0;
    return k3_fail(err, K3_EUSAGE, "--preset: \"%s\" is none of those that --list-presets prints", name);
}

static int spill(void *opts, const char *value, k3_err *err)
{
    struct options *o = opts;
    int on = k3_opt_find("off|on", value);
    if (on < 0)
        return k3_fail(err, K3_EUSAGE, "--spill: \"%s\" is neither on nor off", value);
    o->spill = on;
    o->spill_given = true;
    return 0;
}

#define AT(field) offsetof(struct options, field)
static const k3_opt table[] = {
    {"model", 'm', "MODEL", "the checkpoint folder (default: $K3_MODEL)", K3_OPT_TEXT, AT(model)},
    {"index", 0, "FILE", "its index (default: MODEL/k3.index)", K3_OPT_TEXT, AT(index)},
    {"trunk", 0, "FILE", "packed trunk (default: MODEL/k3.trunk if it is there; \"none\": from the shards)", K3_OPT_TEXT, AT(trunk)},
    {"sums", 0, "FILE", "checksums of the shards (default: MODEL/k3.sums if it is there)", K3_OPT_TEXT, AT(sums)},

    /* what is generated or judged */
    {"gen", 'n', "N",
     "ids to generate after each prompt (default: 8; 0 only reads it; max: to a\nstop id, as far as there is room)", K3_OPT_CALL,
     .words = "max", .take = gen},
    {"stop-id", 0, "ID",
     "end a sequence after this id, repeatable; \"none\" for never\n(default: the end ids of config and tokenizer)", K3_OPT_CALL,
     .words = "none", .take = add_stop},
    {"temperature", 0, "T", "draw from the distribution at that temperature (default: 0, greedy)", K3_OPT_DOUBLE, AT(temperature),
     .high = 1000},
    {"top-k", 0, "N", "draw among the N likeliest ids", K3_OPT_U64, AT(top_k), 1, UINT32_MAX},
    {"min-p", 0, "P", "leave out ids less likely than P times the likeliest", K3_OPT_DOUBLE, AT(min_p), .high = 1},
    {"top-p", 0, "P", "draw among the fewest ids that together have that probability", K3_OPT_DOUBLE, AT(top_p), .high = 1},
    {"seed", 0, "N", "of the draw (default: 0)", K3_OPT_U64, AT(seed)},
    {"samples", 0, "N", "answers to each prompt, one a line; the k-th is drawn with seed + k - 1 (default: 1)", K3_OPT_U64,
     AT(samples), 1, 1 << 10},
    {"batch", 0, "N", "lines decoded together at most (default: 32 if memory allows)", K3_OPT_U64, AT(batch), 1, MAX_BATCH},
    {"draft", 0, "N",
     "guess up to N ids ahead where the text repeats itself, and verify them\nin one pass; the output does not change (default: 0)",
     K3_OPT_U64, AT(draft), 0, K3_DRAFT_MAX - 1},
    {"draft-from", 0, "COMMAND", "the guesses come from that command, see man k3-decode (default --draft then: 4)", K3_OPT_TEXT,
     AT(draft_from)},
    {"stream-json", 0, NULL, "write a JSON line for every id as it comes, of all lines", K3_OPT_FLAG, AT(stream_json)},
    {"logprobs", 0, "FILE", "write line, index, id and log-probability of every id, TSV with the names\nof the columns first", K3_OPT_TEXT, AT(logprobs)},
    {"score", 0, NULL,
     "generate nothing: write line, position, id, log-probability, rank and\nargmax for every id but the first of a line, TSV",
     K3_OPT_FLAG, AT(score)},
    {"score-npy", 0, "FILE", "the last three of these as float64 [ids, 3] .npy", K3_OPT_TEXT, AT(score_npy)},
    {"perplexity", 0, NULL,
     "generate nothing: write mean negative log-likelihood, its standard\nerror and the perplexity", K3_OPT_FLAG, AT(perplexity)},
    {"save-state", 0, "FILE", "write the state after the line, to go on from", K3_OPT_TEXT, AT(save_state)},
    {"load-state", 0, "FILE", "go on from it: the line's ids follow those of the file", K3_OPT_TEXT, AT(load_state)},
    {"resume", 0, NULL, "the line begins with the ids of --load-state, which are not fed again", K3_OPT_FLAG, AT(resume)},
    {"converse", 0, NULL, "every line continues the same sequence; SIGINT ends an answer", K3_OPT_FLAG, AT(converse)},
    {"ids", 0, NULL, "print the ids of the state file", K3_OPT_FLAG, AT(ids)},
    {"trace", 0, "FILE", "record which experts were chosen, for k3-trace; \"-\" for standard output", K3_OPT_TEXT, AT(trace)},
    {"layers", 0, "N", "run the first N layers only, then norm and head", K3_OPT_U64, AT(layers), 1, K3_MAX_LAYERS},
    {"logits", 0, "FILE", "write the logits of every position fed, float32 [rows, vocab] .npy", K3_OPT_TEXT, AT(logits)},
    {"report", 0, "FILE", "write a JSON report of the run", K3_OPT_TEXT, AT(report)},

    /* how: none of these changes an id */
    {"progress", 0, "auto|on|off",
     "a line on the terminal about what goes on (default: auto, until the first id\nthat the user may read there)", K3_OPT_WORD,
     AT(progress), .words = "auto|on|off"},
    {"threads", 't', "N", "compute threads (default: the physical cores at hand)", K3_OPT_INT, AT(threads), 1, 1024},
    {"memory", 'M', "SIZE",
     "memory to use in all, such as 256M or 24G (default: 8G, or less\nif nine tenths of what is free is less)", K3_OPT_CALL,
     .take = memory},
    {"preset", 'p', "NAME", "sizes by name, see --list-presets", K3_OPT_CALL,
     .words = "ultra|laptop|desktop|workstation|server|max|auto", .take = preset},
    {"list-presets", 0, NULL, "print the presets and exit", K3_OPT_FLAG, AT(list_presets)},
    {"trunk-gb", 0, "GB", "keep that much of trunk and head in memory", K3_OPT_CALL, .take = trunk_gb},
    {"cache-gb", 0, "GB", "keep that much of routed experts in memory", K3_OPT_CALL, .take = cache_gb},
    {"cache-policy", 0, "NAME", "which experts stay: lru, layers or lfu (default: layers)", K3_OPT_WORD, AT(policy),
     .words = K3_POLICY_WORDS},
    {"lookahead", 0, "N",
     "read up to N experts of a layer before its router has chosen, by a guess\n"
     "(default: as many as pay, none where the disk is busy anyway)", K3_OPT_U64, AT(lookahead), 0, UINT16_MAX},
    {"plan", 0, NULL, "print where memory goes and what a token reads, and exit", K3_OPT_FLAG, AT(plan)},
    {"json", 0, NULL, "print the plan, the presets or the perplexity as JSON", K3_OPT_FLAG, AT(json)},
    {"disk-rate", 0, "RATE",
     "plan for a device of that many bytes a second instead of measuring;\nTRUNK,EXPERTS for two devices", K3_OPT_CALL,
     .take = rates},
    {"mem-limit", 0, "SIZE", "plan for a machine with that much memory to use", K3_OPT_SIZE, AT(mem_limit), 1},
    {"context", 0, "N", "plan for at least N positions a sequence", K3_OPT_U64, AT(context), 1, 1 << 30},
    {"chunk", 0, "N", "prompt tokens in one pass over the weights (default: as memory allows)", K3_OPT_U64, AT(chunk), 1, 1 << 20},
    {"tile", 0, "SIZE", "largest piece of a matrix read at once (default: 4Mi, less if memory is short)", K3_OPT_SIZE, AT(tile), 4096,
     1 << 30},
    {"ring", 0, "N", "tile buffers, at least 2 (default: as memory allows)", K3_OPT_U64, AT(ring), 2, 4096},
    {"io-depth", 0, "N", "reads in flight (default: 8, fewer if memory is short or that is faster)", K3_OPT_U64, AT(io_depth), 1, 256},
    {"direct", 0, "on|off", "read past the page cache (default: on)", K3_OPT_ON_OFF, AT(direct)},
    {"huge", 0, "on|off", "ask for huge pages (default: on)", K3_OPT_ON_OFF, AT(huge)},
    {"prefetch", 0, "WAY",
     "how weights are read from memory: none, t0 or nta[,BYTES ahead[,STREAMS]]\n(default: auto: measured where a large model runs)", K3_OPT_CALL,
     .words = "auto|none|t0|nta", .take = prefetch},
    {"spill", 0, "on|off", "keep the KDA state in a scratch file (default: if memory is short)", K3_OPT_CALL, .take = spill},
    {"scratch", 0, "DIR", "folder of the scratch file, on a disk (default: $TMPDIR or /var/tmp)", K3_OPT_TEXT, AT(scratch)},
    {"slow-reads", 0, "US", "delay every read by that many microseconds, for tests", K3_OPT_U64, AT(slow_us), 0, 10000000},
    K3_COMMON_OPTS,
    {0},
};

/* The first of the options "a|b|c" that was given, in name; false if none was. */
static bool one_given(const k3_args *a, const char *names, char name[32])
{
    while (k3_opt_word(&names, '|', name, 32))
        if (k3_opt_given(a, name))
            return true;
    return false;
}

/* Options that would have no effect beside others. */
static int check_effect(const struct options *o, const k3_args *a, k3_err *err)
{
    char name[32];
    if (o->draft_from && (options_judge(o) || !o->gen || !o->draft))
        return k3_fail(err, K3_EUSAGE, "--draft-from has no effect with %s", options_judge(o) ? "scoring" : o->draft ? "--gen 0" : "--draft 0");
    if (o->temperature == 0 && one_given(a, "top-k|min-p|top-p|seed|samples", name))
        return k3_fail(err, K3_EUSAGE, "--%s is about draws: it needs a --temperature above 0", name);
    if (options_judge(o) && one_given(a, "gen|stop-id|temperature|draft|stream-json|logprobs|save-state|resume", name))
        return k3_fail(err, K3_EUSAGE, "--%s: scoring generates nothing", name);
    if (o->json && !o->plan && !o->perplexity)
        return k3_fail(err, K3_EUSAGE, "--json is for --plan, --list-presets, --perplexity and state; --stream-json writes ids as JSON");
    if (o->ids)
        return k3_fail(err, K3_EUSAGE, "--ids is for state");
    if (o->spill == 0 && k3_opt_given(a, "scratch"))
        return k3_fail(err, K3_EUSAGE, "--scratch is for a state in a file: not with --spill off");
    if (o->batch > 1 && one_given(a, "converse|save-state", name))
        return k3_fail(err, K3_EUSAGE, "--%s takes one line at a time: not with --batch", name);
    if (o->samples > 1 && one_given(a, "converse|save-state", name))
        return k3_fail(err, K3_EUSAGE, "--%s is about one sequence: not with --samples", name);
    if (o->resume && !o->load_state)
        return k3_fail(err, K3_EUSAGE, "--resume goes on from a state: it needs --load-state");
    return 0;
}

/* A file called "-" is standard output, which it then has for itself. */
static int give_stdout(struct options *o, k3_err *err)
{
    const char **file[] = {&o->trace, &o->logits, &o->logprobs, &o->score_npy, &o->save_state, &o->report};
    int n = o->score + o->perplexity + o->stream_json;
    for (size_t i = 0; i < sizeof file / sizeof *file; i++) {
        if (!*file[i] || strcmp(*file[i], "-"))
            continue;
        o->stdout_taken = true;
        n++;
        if (i) /* a trace knows the name */
            *file[i] = "/dev/stdout";
    }
    if (n > 1)
        return k3_fail(err, K3_EUSAGE, "only one of --score, --perplexity, --stream-json and files called - can have standard output");
    return 0;
}

/* What does not go together. */
static int check(struct options *o, const k3_args *a, k3_err *err)
{
    if (o->converse && options_judge(o))
        return k3_fail(err, K3_EUSAGE, "--converse is a sequence that is answered: not for scoring");
    int status = check_effect(o, a, err);
    return status ? status : give_stdout(o, err);
}

/* Of all options `state` takes only those about its output. */
static int check_state(const k3_args *a, k3_err *err)
{
    for (size_t i = 0; a->table[i].name; i++)
        if (a->given[i] && strcmp(a->table[i].name, "json") && strcmp(a->table[i].name, "ids") && a->table[i].type < K3_OPT_HELP)
            return k3_fail(err, K3_EUSAGE, "--%s does not go with state", a->table[i].name);
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
    if (state)
        return check_state(a, err);
    int status = k3_opt_model(&o->model, err);
    return status ? status : check(o, a, err);
}

int options_parse(struct options *o, int argc, char **argv, bool *done, k3_err *err)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    *o = (struct options){.gen = 8, .top_p = 1, .samples = 1, .trunk_bytes = -1, .cache_bytes = -1, .lookahead = -1, .spill = -1,
                          .policy = K3_POLICY_LAYERS, .direct = true, .huge = true};
    int status = k3_opt_parse(&args, o, done, err);
    if (status || *done)
        return status;
    k3_progress_mode = o->progress;
    if (o->list_presets) {
        plan_list_presets(o->json);
        *done = true;
        return 0;
    }
    if (o->draft_from && !k3_opt_given(&args, "draft"))
        o->draft = 4;
    if ((status = operands(o, &args, err)))
        return status;
    if (options_judge(o))
        o->gen = 0;
    if (!o->threads)
        o->threads = k3_threads_default();
    if (!o->scratch)
        o->scratch = k3_env("TMPDIR") ? k3_env("TMPDIR") : "/var/tmp";
    return 0;
}
