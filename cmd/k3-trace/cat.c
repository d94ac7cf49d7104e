/* SPDX-License-Identifier: Apache-2.0 */
/* cat: the choices as text or JSON lines. */
#include "trace.h"

#include <inttypes.h>

static const k3_opt table[] = {
    {"json", 0, NULL, "one JSON object a line", K3_OPT_FLAG},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] = "usage: k3-trace cat [--json] [TRACE]\n"
                            "\n"
                            "One line for each position in each layer: step, sequence, position, phase, layer, then\n"
                            "the experts in router order as EXPERT[:WEIGHT][*], * where it was resident.\n";

static void print_text(const k3_trace_batch *b, int r)
{
    const k3_trace_row *row = &b->row[r];
    printf("%" PRIu64 " %u %" PRIu64 " %s %d", b->step, row->sequence, row->position, k3_phase_name(row->phase),
           b->layer);
    for (int i = r * b->k; i < (r + 1) * b->k; i++) {
        printf(" %d", b->experts[i]);
        if (b->weights)
            printf(":%.9g", (double)b->weights[i]);
        if (b->residency && b->residency[i])
            putchar('*');
    }
    putchar('\n');
}

static void print_json(const k3_trace_batch *b, int r)
{
    const k3_trace_row *row = &b->row[r];
    int from = r * b->k, to = from + b->k;
    printf("{\"step\":%" PRIu64 ",\"sequence\":%u,\"position\":%" PRIu64
           ",\"phase\":\"%s\",\"layer\":%d,\"experts\":[",
           b->step, row->sequence, row->position, k3_phase_name(row->phase), b->layer);
    for (int i = from; i < to; i++)
        printf("%s%d", i > from ? "," : "", b->experts[i]);
    for (int i = from; b->weights && i < to; i++) /* a NaN or infinity is no JSON number */
        printf(b->weights[i] - b->weights[i] == 0 ? "%s%.9g" : "%snull", i > from ? "," : "],\"weights\":[",
               (double)b->weights[i]);
    for (int i = from; b->residency && i < to; i++)
        printf("%s%d", i > from ? "," : "],\"resident\":[", b->residency[i]);
    printf("]}\n");
}

int cmd_cat(int argc, char **argv, k3_err *err)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    k3_trace_reader *r;
    const k3_trace_batch *b;
    bool json = false;
    bool done;
    int status = k3_opt_parse(&args, &json, &done, err);
    if (status || done)
        return status;
    if ((status = open_operand(&args, &r, err)))
        return status;
    while (!(status = k3_trace_next(r, &b, err)) && b && !ferror(stdout))
        for (int i = 0; i < b->rows; i++)
            (json ? print_json : print_text)(b, i);
    k3_trace_free(r);
    return status;
}
