/* SPDX-License-Identifier: Apache-2.0 */
/* Which expert holds which slot, and the lists that order them: what every policy keeps. */
#ifndef K3_CACHE_RESIDENTS_H
#define K3_CACHE_RESIDENTS_H

#include "k3_cache.h"

/* A slot in the doubly linked list it belongs to; node[slots + l] is the head
 * of list l, next = first, prev = last. */
struct slot_node {
    uint32_t prev, next, id;
};

struct list {
    uint32_t base, quota; /* slots base..base+quota-1 */
    uint32_t used;        /* of them, handed out so far */
};

struct residents {
    k3_shape shape;
    uint32_t slots, nids; /* ids: (layer - first) * experts + expert */
    int lists;            /* 1 for lru, one a layer for the others */
    struct slot_node *node;    /* [slots + lists] */
    struct list *list;    /* [lists] */
    int32_t *slot_of;     /* [nids], -1 = not resident */
};

static inline void unlink_slot(struct slot_node *node, uint32_t s)
{
    node[node[s].prev].next = node[s].next;
    node[node[s].next].prev = node[s].prev;
}

static inline void push_first(struct slot_node *node, uint32_t head, uint32_t s)
{
    node[s].prev = head;
    node[s].next = node[head].next;
    node[node[head].next].prev = s;
    node[head].next = s;
}

/* Looks the batch up (ids first + experts[i]) and takes what is resident out of its list, so that it cannot be chosen
 * to leave while the batch is served. Returns the hits. */
static inline int take_hits(struct residents *r, uint32_t first, const uint16_t *experts, int n, int32_t *slot_of, uint8_t *hit)
{
    int hits = 0;
    for (int i = 0; i < n; i++) {
        slot_of[i] = r->slot_of[first + experts[i]];
        hit[i] = slot_of[i] >= 0;
        hits += hit[i];
        if (hit[i])
            unlink_slot(r->node, (uint32_t)slot_of[i]);
    }
    return hits;
}

#endif
