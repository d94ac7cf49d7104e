/* --trace: which experts every layer chose, and which of them were resident. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

/* Room for the rows of a pass; another plan may have longer ones. */
static int make_room(struct engine *e, uint64_t tokens, k3_err *err)
{
    uint64_t picks = tokens * e->c->topk;
    free(e->trace_row);
    free(e->trace_hits);
    e->trace_row = calloc(tokens, sizeof *e->trace_row);
    e->trace_hits = calloc(picks, sizeof *e->trace_hits);
    if (!e->trace_row || !e->trace_hits)
        return k3_fail(err, K3_ESYS, "out of memory for the trace");
    return 0;
}

int record_open(struct engine *e, k3_err *err)
{
    const k3_config *c = e->c;
    const struct plan *p = e->plan;
    int status = e->o->trace ? make_room(e, p->tokens, err) : 0;
    if (!e->o->trace || e->trace || status)
        return status;
    k3_trace_header h = {.shape = {.layers = (int)c->layers, .first = (int)c->first_moe, .experts = (int)c->experts, .topk = (int)c->topk},
                         .expert_bytes = k3_expert_bytes(c), .fingerprint = k3_index_fingerprint(e->index), .weights = true,
                         .residency = true, .policy = p->stream.policy, .slots = p->stream.expert_slots};
    snprintf(h.source, sizeof h.source, "k3-decode %s", K3_VERSION);
    return k3_trace_create(&e->trace, e->o->trace, &h, false, err);
}

int record_pass(struct engine *e, const k3_span *spans, struct sequence **of, size_t n, k3_err *err)
{
    size_t rows = 0;
    if (!e->trace)
        return 0;
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < spans[i].n; t++) {
            uint64_t position = k3_state_position(spans[i].state) + t;
            e->trace_row[rows++] = (k3_trace_row){.position = position, .sequence = (uint32_t)of[i]->line,
                                                  .phase = position < of[i]->prompt ? K3_PHASE_PREFILL
                                                           : t && spans[i].tentative ? K3_PHASE_DRAFT
                                                                                     : K3_PHASE_DECODE};
        }
    return k3_trace_step_rows(e->trace, e->trace_row, (int)rows, err);
}

/* Called by the pass between routing and the cache, so residency is that of routing time. */
int record_routing(struct engine *e, int layer, const uint16_t *experts, const float *weights, size_t tokens)
{
    size_t n = tokens * e->c->topk;
    k3_err err = {0};
    for (size_t i = 0; i < n; i++)
        e->trace_hits[i] = k3_policy_slot(e->source->policy, layer, experts[i]) >= 0;
    int status = k3_trace_layer(e->trace, layer, experts, (int)n, weights, e->trace_hits, &err);
    if (status)
        k3_report_error(&err);
    return status;
}
