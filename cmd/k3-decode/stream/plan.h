/* plan.h - the planner: a model, a machine and limits give sizes. No file is opened here. */
#ifndef PLAN_H
#define PLAN_H

#include "stream.h"

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

/* machine.c: the trunk file to use, or NULL for the shards. */
const char *stream_trunk_path(const struct stream_place *at, char buf[4096]);
/* See stream_plan(). */
int plan_make(struct plan *p, const struct plan_input *in, const struct machine *m, k3_err *err);

#endif
