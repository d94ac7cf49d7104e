/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a run. */
#include "record.h"
#include "stream/stream.h"

#include <stdlib.h>

static void free_room(struct record *r)
{
    free(r->row);
    free(r->hits);
}

/* Room for the rows of a pass; another plan may have longer ones. */
static int make_room(struct record *r, uint64_t tokens, k3_err *err)
{
    free_room(r);
    r->row = calloc(tokens, sizeof *r->row);
    r->hits = calloc(tokens * r->engine->c->topk, sizeof *r->hits);
    if (!r->row || !r->hits)
        return k3_fail(err, K3_ESYS, "out of memory for the trace");
    return 0;
}

int record_open(struct record *r, const struct engine *e, k3_err *err)
{
    const k3_config *c = e->c;
    const struct plan *p = e->plan;
    const char *path = e->set.o->trace;
    r->engine = e;
    int status = path ? make_room(r, p->tokens, err) : 0;
    if (!path || r->trace || status)
        return status;
    k3_trace_header h = {.shape = {.layers = (int)c->layers, .first = (int)c->first_moe, .experts = (int)c->experts, .topk = (int)c->topk},
                         .expert_bytes = k3_expert_bytes(c), .fingerprint = k3_index_fingerprint(e->index), .weights = true,
                         .residency = true, .policy = p->stream.policy, .slots = p->stream.expert_slots};
    snprintf(h.source, sizeof h.source, "k3-decode %s", K3_VERSION);
    if (!(status = k3_trace_create(&r->trace, path, &h, false, err)))
        k3_trace_live(r->trace);
    return status;
}

static uint32_t phase(const struct sequence *s, const k3_span *span, size_t token)
{
    if (k3_state_position(span->state) + token < s->prompt)
        return K3_PHASE_PREFILL;
    return token && span->tentative ? K3_PHASE_DRAFT : K3_PHASE_DECODE;
}

/* The trace ends where its reader goes away; the run can then still leave what else was asked for. */
static int unless_gone(struct record *r, int status, k3_err *err)
{
    if (status != K3_EPIPE)
        return status;
    r->gone = true;
    *err = (k3_err){0};
    return 0;
}

int record_pass(struct record *r, const k3_span *spans, struct sequence *const *of, size_t n, k3_err *err)
{
    size_t rows = 0;
    if (!r->trace || r->gone)
        return 0;
    for (size_t i = 0; i < n; i++)
        for (size_t t = 0; t < spans[i].n; t++)
            r->row[rows++] = (k3_trace_row){.position = k3_state_position(spans[i].state) + t, .sequence = of[i]->number,
                                            .phase = phase(of[i], &spans[i], t)};
    return unless_gone(r, k3_trace_step_rows(r->trace, r->row, (int)rows, err), err);
}

int record_routing(struct record *r, int layer, const uint16_t *experts, const float *weights, size_t tokens)
{
    size_t n = tokens * r->engine->c->topk;
    if (r->gone)
        return 0;
    for (size_t i = 0; i < n; i++)
        r->hits[i] = engine_resident(r->engine, layer, experts[i]);
    return unless_gone(r, k3_trace_layer(r->trace, layer, experts, (int)n, weights, r->hits, &r->why), &r->why);
}

int record_commit(struct record *r, k3_err *err)
{
    if (!r->trace || r->gone)
        return 0;
    return unless_gone(r, k3_trace_close(&r->trace, err), err);
}

void record_close(struct record *r)
{
    k3_trace_abort(&r->trace);
    free_room(r);
}
