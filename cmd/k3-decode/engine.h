/* SPDX-License-Identifier: Apache-2.0 */
/* engine.h - what a run computes with: the indexed model, kernels, threads, and, once the demand is
 * known, a plan with the weight source and the workspace that it describes. */
#ifndef ENGINE_H
#define ENGINE_H

#include "k3_model.h"
#include "k3_store.h"
#include "settings.h"
#include "stream/stream.h"

/* What the passes did, summed over the sources that a run has had. */
struct totals {
    k3_traffic traffic;
    uint64_t evictions, unused_bytes, scratch_read, scratch_written;
    struct guess_counts guesses;
    double wait_trunk, wait_experts, busy; /* seconds; busy: a read was in flight */
    uint64_t pinned_bytes;   /* of the source that is open, or was last */
    uint32_t reads_in_flight; /* of it too */
};
uint64_t totals_bytes(const struct totals *t); /* read in all */

struct engine {
    struct settings set;
    k3_index *index;
    const k3_config *c;
    const k3_kernels *kernels;
    k3_pool *pool;
    struct plan *plan;       /* NULL until the first demand */
    struct streamer *source;
    k3_reading reading;      /* of weights in memory */
    const char *reading_from; /* "given", "measured" or "usual"; NULL until the first demand */
    k3_model *model;
    float *row;              /* [plan rows][vocab] */
    struct totals before;    /* of sources already closed, and of states already freed */
};
int engine_open(struct engine *e, const struct options *o, k3_err *err);
/* Plans for a demand and opens source and workspace, in place of those there were. One state may live on (else
 * NULL): it gets the room that is planned, and the plan leaves it where it is, in memory or scratch file. */
int engine_prepare(struct engine *e, const struct demand *d, k3_state *keep, k3_err *err);
k3_source *engine_source(struct engine *e);
/* A state as planned: for so many positions, with drafts, spilled or not. */
int engine_new_state(struct engine *e, k3_state **state, k3_err *err);
/* Its scratch traffic is counted and it is freed; NULL is fine. */
void engine_free_state(struct engine *e, k3_state **state);
/* Ends all reading, so that the totals are final. */
void engine_stop(struct engine *e);
void engine_totals(const struct engine *e, struct totals *t);
/* Whether the expert is in memory now. */
bool engine_resident(const struct engine *e, int layer, uint16_t expert);
/* Bytes of trunk and head that a pass goes through. */
uint64_t engine_dense_bytes(const struct engine *e);
void engine_close(struct engine *e);

#endif
