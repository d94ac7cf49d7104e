/* SPDX-License-Identifier: Apache-2.0 */
/* hist: how often each expert was chosen. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>

static const k3_opt table[] = {
    {"tsv", 0, NULL, "lines of layer, expert, uses instead of JSON", K3_OPT_FLAG},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] = "usage: k3-trace hist [--tsv] [TRACE]\n"
                            "\n"
                            "Uses of every expert that was chosen at all, as expert_hist.json:\n"
                            "{\"n_layers\":93,\"n_experts\":896,\"counts\":{\"LAYER,EXPERT\":USES,...}}\n";

static void print(const k3_shape *s, const uint64_t *uses, bool tsv)
{
    const char *comma = "";
    if (tsv)
        puts("layer\texpert\tuses");
    else
        printf("{\"n_layers\":%d,\"n_experts\":%d,\"counts\":{", s->layers, s->experts);
    for (int l = s->first; l < s->layers; l++)
        for (int e = 0; e < s->experts; e++) {
            uint64_t n = uses[(size_t)(l - s->first) * (size_t)s->experts + (size_t)e];
            if (!n)
                continue;
            if (tsv) {
                printf("%d\t%d\t%" PRIu64 "\n", l, e, n);
            } else {
                printf("%s\"%d,%d\":%" PRIu64, comma, l, e, n);
                comma = ",";
            }
        }
    if (!tsv)
        printf("}}\n");
}

int cmd_hist(int argc, char **argv, k3_err *err)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    k3_trace_reader *r;
    const k3_trace_batch *b;
    bool tsv = false;
    bool done;
    int status = k3_opt_parse(&args, &tsv, &done, err);
    if (status || done)
        return status;
    if ((status = open_operand(&args, &r, err)))
        return status;
    const k3_shape *s = &k3_trace_info(r)->shape;
    size_t experts = (size_t)s->experts;
    uint64_t *uses = calloc((size_t)(s->layers - s->first) * experts, sizeof *uses);
    if (!uses)
        status = k3_fail(err, K3_ESYS, "out of memory");
    while (!status && !(status = k3_trace_next(r, &b, err)) && b)
        for (int i = 0; i < b->rows * b->k; i++)
            uses[(size_t)(b->layer - s->first) * experts + (size_t)b->experts[i]]++;
    if (!status)
        print(s, uses, tsv);
    free(uses);
    k3_trace_free(r);
    return status;
}
