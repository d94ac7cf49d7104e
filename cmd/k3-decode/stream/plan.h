/* SPDX-License-Identifier: Apache-2.0 */
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
/* Numbers of the reading order without building it. */
struct order_size {
    uint64_t tiles;          /* at most: small vectors may share some */
    uint64_t pieces, trunk, head; /* number; weight bytes before the head and of it */
    uint64_t largest;        /* bytes of the largest tile of one tensor */
    uint64_t room;           /* memory of all tiles, at most */
    uint64_t attention;      /* bytes of trunk, in layers with experts, that are used while a lookahead reads */
};
/* `packed`: from a trunk file, where every tile starts aligned. */
struct order_size plan_order_size(const k3_config *c, uint64_t layers, uint64_t tile, bool packed);

/* Fills *p. False if even the least does not fit; *p then is that least plan, with p->total > p->budget. */
bool plan_make(struct plan *p, const struct plan_input *in, const struct machine *m);
/* Whether the least plan would fit with these limits instead. */
bool plan_fits(const struct plan_input *in, const struct limits *l, uint64_t budget);

#endif
