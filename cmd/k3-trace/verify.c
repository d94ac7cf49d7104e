/* SPDX-License-Identifier: Apache-2.0 */
/* verify: the simulator against the cache that ran. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define AT(field) offsetof(struct choice, field)
/* What the command line says of the cache. */
struct choice {
    const char *model;
    int policy;      /* K3_POLICY_*, -1: the run's */
    uint64_t slots;  /* UINT64_MAX: the run's */
};

static const k3_opt table[] = {
    {"model", 'm', "MODEL", "refuse a trace that is not of this checkpoint", K3_OPT_TEXT, AT(model)},
    {"policy", 'p', "POLICY", "lru, layers or lfu (default: the run's, from the trace)", K3_OPT_WORD, AT(policy),
     .words = K3_POLICY_WORDS},
    {"slots", 's', "N", "size of the cache (default: the run's, from the trace)", K3_OPT_U64, AT(slots), 0, UINT32_MAX},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] = "usage: k3-trace verify [-m MODEL] [-p POLICY -s SLOTS] [TRACE]\n"
                            "\n"
                            "Replays a trace with the cache of the run that wrote it and compares, request by\n"
                            "request, what was resident then with what is now. Exit status 1 where they differ.\n";

struct replay_check {
    k3_policy *policy;
    k3_shape shape;
    uint16_t *distinct;
    int32_t *slot_of;
    uint8_t *seen, *hit, *now; /* [experts] */
    uint64_t requests, hits, differ;
};

/* Compares one batch; *first is filled at the first difference. */
static void replay(struct replay_check *v, const k3_trace_batch *b, char *first, size_t size)
{
    int n = (int)k3_distinct(v->seen, b->experts, (size_t)b->rows, (size_t)b->k, v->distinct);
    v->hits += (uint64_t)k3_policy_batch(v->policy, b->layer, v->distinct, n, v->slot_of, v->hit);
    v->requests += (uint64_t)n;
    for (int i = 0; i < n; i++)
        v->now[v->distinct[i]] = v->hit[i];
    for (int i = 0; i < b->rows * b->k; i++) {
        uint8_t now = v->now[b->experts[i]];
        if (now != b->residency[i] && !v->differ++)
            snprintf(first, size,
                     "step %" PRIu64 ", layer %d, position %" PRIu64
                     ", rank %d: expert %d was %s, the replay says %s",
                     b->step, b->layer, b->row[i / b->k].position, i % b->k, b->experts[i],
                     b->residency[i] ? "resident" : "not resident", now ? "resident" : "not resident");
    }
}

static int run(struct replay_check *v, k3_trace_reader *r, int kind, uint32_t slots, k3_err *err)
{
    size_t experts = (size_t)v->shape.experts;
    const k3_trace_batch *b;
    char first[256] = "";
    v->distinct = malloc(experts * sizeof *v->distinct);
    v->slot_of = malloc(experts * sizeof *v->slot_of);
    v->seen = calloc(experts, 1);
    v->hit = malloc(experts);
    v->now = calloc(experts, 1);
    if (!v->distinct || !v->slot_of || !v->seen || !v->hit || !v->now)
        return k3_fail(err, K3_ESYS, "out of memory");
    int status = k3_policy_new(&v->policy, kind, &v->shape, slots, err);
    while (!status && !(status = k3_trace_next(r, &b, err)) && b)
        replay(v, b, first, sizeof first);
    if (status)
        return status;
    if (v->differ)
        return k3_fail(err, K3_EDATA,
                       "%s: %s with %u slots does not give what was recorded: %" PRIu64 " of %" PRIu64
                       " choices differ; %s",
                       k3_trace_name(r), k3_policy_name(kind), slots, v->differ, k3_trace_count(r).choices, first);
    printf("%s, %u slots: %" PRIu64 " requests, %" PRIu64 " hits, as recorded\n", k3_policy_name(kind), slots,
           v->requests, v->hits);
    return 0;
}

int cmd_verify(int argc, char **argv, k3_err *err)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    k3_trace_reader *r;
    struct replay_check v = {.policy = NULL};
    struct choice c = {.policy = -1, .slots = UINT64_MAX};
    bool done;
    int status = k3_opt_parse(&args, &c, &done, err);
    if (status || done)
        return status;
    if ((status = open_operand(&args, &r, err)))
        return status;
    const k3_trace_header *h = k3_trace_info(r);
    v.shape = h->shape;
    if ((status = check_model(c.model, r, NULL, err)))
        ;
    else if (!h->residency)
        status = k3_fail(err, K3_EDATA, "%s: does not record what was resident, which k3-decode --trace does", k3_trace_name(r));
    else if (h->policy < 0 && (c.policy < 0 || c.slots == UINT64_MAX))
        status = k3_fail(err, K3_EDATA,
                         "%s: does not say which cache ran (a cut or joined trace); give --policy and --slots",
                         k3_trace_name(r));
    else
        status = run(&v, r, c.policy < 0 ? h->policy : c.policy, c.slots == UINT64_MAX ? h->slots : (uint32_t)c.slots, err);
    k3_policy_free(v.policy);
    free(v.distinct);
    free(v.slot_of);
    free(v.seen);
    free(v.hit);
    free(v.now);
    k3_trace_free(r);
    return status;
}
