/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h - many policies and sizes over one trace. */
#ifndef K3_TRACE_SIMULATE_H
#define K3_TRACE_SIMULATE_H

#include "trace.h"

enum { MAX_SIZES = 4096 };

/* What --policy takes, in the order of K3_SIM_*. */
#define SIM_POLICY_WORDS K3_POLICY_WORDS "|fifo|clock|random|slru|2q|arc|s3fifo|sieve|wtinylfu|pin|belady|belady-bypass"

struct warmup {
    bool prefill;   /* prefill positions are not counted */
    uint64_t steps; /* nor are the first steps */
};

/* What to simulate. */
struct sim_job {
    int kind[K3_SIM_COUNT], kinds; /* lru needs none of the sizes below: the curve has them all */
    uint32_t slots[MAX_SIZES];
    int sizes;
    bool batched;
    struct warmup warmup;
    uint64_t seed;
    int threads;
    bool count_uses;
};

/* What came out. */
struct outcome {
    k3_trace_header header;
    uint64_t choices;   /* in the trace, repeats in a chunk included */
    uint64_t requests;  /* counted */
    uint64_t first;     /* of these, for experts never requested before */
    uint64_t tokens;    /* positions counted */
    uint64_t steps, distinct;
    uint64_t *hits;     /* [kinds][sizes] */
    k3_curve *curve;    /* lru at every size */
    uint64_t *uses;     /* [layers with experts][experts] choices, if the job asks */
};

int simulate(k3_trace_reader *r, const struct sim_job *job, struct outcome *o, k3_err *err);
void outcome_free(struct outcome *o);
static inline uint64_t hits_at(const struct outcome *o, const struct sim_job *job, int kind, int size)
{
    return o->hits[(size_t)kind * (size_t)job->sizes + (size_t)size];
}

/* "lru,layers" or "all"; "455,8G,10%"; "prefill" or a number of steps. */
int parse_policies(const char *text, struct sim_job *job, k3_err *err);
int parse_sizes(const char *text, const k3_trace_header *h, struct sim_job *job, k3_err *err);
int parse_warmup(const char *text, struct warmup *w, k3_err *err);
/* The unit in which `bytes` reads well: 1e9, 1e6 or 1e3, and its name. */
double unit_of(double bytes, const char **name);
/* Slots of one token: experts a position uses in all layers. */
uint32_t token_slots(const k3_shape *s);

/* The split of a memory budget between pinned trunk and expert cache. */
struct budget {
    uint64_t bytes, trunk;         /* trunk: all of it */
    double trunk_rate, expert_rate; /* bytes a second */
    bool json, tsv;
};
int print_budget(k3_trace_reader *r, struct sim_job *job, const struct budget *b, k3_err *err);

#endif
