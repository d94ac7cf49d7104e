/* Inside of the engine's cache policies. */
#ifndef K3_TRACE_POLICY_H
#define K3_TRACE_POLICY_H

#include "k3_trace.h"

/* A slot in the doubly linked list it belongs to; node[slots + l] is the head
 * of list l, next = first, prev = last. */
struct node {
    uint32_t prev, next, id;
};

struct list {
    uint32_t base, quota; /* slots base..base+quota-1 */
    uint32_t used;        /* of them, handed out so far */
};

struct lfu;

struct k3_policy {
    int kind;
    k3_shape shape;
    uint32_t slots, nids;  /* ids: (layer - first) * experts + expert */
    int lists;             /* 1 for lru, one a layer for the others */
    struct node *node;     /* [slots + lists] */
    struct list *list;     /* [lists] */
    int32_t *slot_of;      /* [nids], -1 = not resident */
    uint32_t *mark, epoch; /* [experts], to tell distinct ones */
    struct lfu *lfu;
};

static inline void unlink_slot(struct node *node, uint32_t s)
{
    node[node[s].prev].next = node[s].next;
    node[node[s].next].prev = node[s].prev;
}

static inline void push_first(struct node *node, uint32_t head, uint32_t s)
{
    node[s].prev = head;
    node[s].next = node[head].next;
    node[node[head].next].prev = s;
    node[head].next = s;
}

/* The distinct experts of [rows][k] choices in the policies' order; mark[experts] starts as zeros. */
int k3_distinct_experts(uint32_t *mark, uint32_t *epoch, int mark_size, const int32_t *experts, int rows, int k,
                     int32_t *distinct);

int k3_lfu_new(k3_policy *p, k3_err *err);
void k3_lfu_clear(k3_policy *p);
void k3_lfu_free(k3_policy *p);
int k3_lfu_batch(k3_policy *p, int layer, const int32_t *experts, int n, int32_t *slot_of, uint8_t *hit);

#endif
