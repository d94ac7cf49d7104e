/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the command line of k3-decode, understood and not changed after. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "k3_kernel.h"

enum { MAX_STOPS = 64, MAX_BATCH = 1024 };

#define GEN_MAX UINT64_MAX       /* --gen max: as far as there is room */

struct options {
    const char *model, *index, *trunk, *sums, *scratch;
    const char *logits, *report, *trace, *logprobs, *score_npy, *save_state, *load_state;
    uint64_t gen;                /* ids after each prompt, or GEN_MAX */
    uint64_t layers;             /* 0: all of the model */
    uint64_t batch;              /* sequences decoded together at most, 0: the planner's choice */
    uint64_t draft;              /* tokens drafted at most, 0: none */
    const char *draft_from;      /* a command that proposes them, NULL: the text itself */
    bool score, perplexity, stream_json;
    bool converse;               /* all lines are one sequence */
    bool resume;                 /* the line begins with the ids of load_state */
    double temperature, top_p, min_p; /* temperature 0: greedy */
    uint64_t top_k, seed;
    uint64_t samples;            /* answers to each prompt */
    bool stdout_taken;           /* by a file called "-": no ids are written there */
    uint64_t chunk, tile;        /* 0: the planner's choice */
    uint64_t ring, io_depth;     /* 0: the planner's choice */
    uint64_t memory;             /* bytes, 0: see the two below, or all that is free */
    int64_t trunk_bytes, cache_bytes; /* given sizes, -1: the planner's choice */
    int spill;                   /* KDA state in scratch: 1 yes, 0 no, -1 the planner's choice */
    bool spill_given;            /* by --spill, which neither --memory nor a preset takes back */
    int policy;                  /* K3_POLICY_* */
    int64_t lookahead;           /* experts read ahead of their router, -1: the planner's choice */
    bool direct, huge;
    bool prefetch_given;         /* --prefetch other than auto */
    k3_reading prefetch;
    uint64_t slow_us;            /* delay of every read, for tests */
    bool plan, list_presets, json;
    uint64_t disk_rate, expert_rate; /* bytes/s, 0: measured */
    uint64_t mem_limit;          /* 0: the machine's */
    uint64_t context;            /* positions to plan for at least */
    int threads;
    int progress;                /* K3_PROGRESS_* */
    uint32_t stops[MAX_STOPS];   /* given ones */
    size_t nstops;
    bool stops_given;
    const char *describe;        /* the state file of `k3-decode state FILE` */
    bool ids;                    /* of it, the ids */
};

/* *done: help, version or the presets were printed, and the program ends. */
int options_parse(struct options *o, int argc, char **argv, bool *done, k3_err *err);
/* Presets are options too: the sizes that a name stands for. False if there is none. */
bool options_preset(struct options *o, const char *name);
/* Ids of the lines are judged, none are generated. */
static inline bool options_judge(const struct options *o)
{
    return o->score || o->perplexity || o->score_npy;
}

#endif
