/* plan.h - the planner: a model, a machine and limits give sizes. No file is opened here. */
#ifndef PLAN_H
#define PLAN_H

#include "stream.h"

/* Reads that any device serves at its full rate, and so many that one that reports them
 * together (as virtual disks do) is seldom without the next. */
enum { DEFAULT_TILE = 4 << 20, DEFAULT_IO_DEPTH = 8, LEAST_IO_DEPTH = 2 };

/* What is fixed before the plan is made. */
struct plan_input {
    const struct limits *limits;
    const k3_config *c;
    struct demand demand;
    uint64_t expert_room;    /* memory of one expert slot */
    uint64_t bounce;         /* of one reader thread */
    uint64_t trunk_tile;     /* tile size of the trunk file, 0: from the shards */
    uint64_t index_bytes;    /* of the mapped index */
};

/* See stream_plan(). */
int plan_make(struct plan *p, const struct plan_input *in, const struct machine *m, k3_err *err);

#endif
