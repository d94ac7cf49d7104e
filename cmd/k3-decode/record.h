/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - --trace: which experts every layer chose, and which of them were in memory. */
#ifndef RECORD_H
#define RECORD_H

#include "engine.h"
#include "k3_trace.h"
#include "sequence.h"

struct record {
    const struct engine *engine;
    k3_trace_writer *trace;  /* NULL: not asked for */
    bool gone;               /* nobody reads it any more, which is no error */
    k3_err why;              /* of a record_routing that failed */
    k3_trace_row *row;       /* [plan tokens] of the pass at hand */
    uint8_t *hits;           /* [plan tokens * topk] */
};
/* After engine_prepare, and after each further one. */
int record_open(struct record *r, const struct engine *e, k3_err *err);
/* Before a pass: its tokens. */
int record_pass(struct record *r, const k3_span *spans, struct sequence *const *of, size_t n, k3_err *err);
/* Inside it, between routing and the cache, so residency is that of routing time. */
int record_routing(struct record *r, int layer, const uint16_t *experts, const float *weights, size_t tokens);
int record_commit(struct record *r, k3_err *err);
void record_close(struct record *r);

#endif
