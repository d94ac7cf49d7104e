/* k3_trace.h - expert routing: the cache policies of the engine, and the .k3t
 * trace that records which experts every layer chose (k3-trace(5)).
 *
 * An expert is a (layer, number) pair; layers are the model's, from 0, and
 * those below k3_shape.first have no experts. All experts have one size, so a
 * cache is counted in slots.
 */
#ifndef K3_TRACE_H
#define K3_TRACE_H

#include "k3_base.h"

/* Where a model's experts are. */
typedef struct k3_shape {
    int layers;   /* layers of the model, at most 65535 */
    int first;    /* first layer that has experts; first < layers */
    int experts;  /* experts in each such layer, 1..65535 */
    int topk;     /* experts that one position uses in a layer, 1..experts */
} k3_shape;

/* ---- cache policies ---------------------------------------------------------------------
 * The decisions of an expert cache, without the experts: k3-decode and the
 * simulator both ask here, so their counts can be compared request by request.
 *
 * A batch is what one layer needs at once: one position's experts, or the
 * distinct experts of all positions of a chunk. Its order is one of value, the
 * most valuable first: the last position's experts as the router ranked them,
 * then the position before, and so on (k3_policy_distinct). Rules, for every policy:
 *   - hits are decided before anything is evicted;
 *   - a batch never evicts its own;
 *   - a miss gets a slot or passes through (is read, used and forgotten). With
 *     fewer slots than the batch the first misses are kept;
 *   - recency is the batch's order (first = most recent), never order of arrival;
 *   - 0 slots is legal: everything passes through.
 * The last position is what the next token resembles most, and high ranks
 * return more often than low ones (0.74 for the first, 0.22 for the sixteenth
 * of K3's recorded decode): keeping a prompt's last positions rather than its
 * first is worth 5 points of hit rate at 30 slots a layer.
 */
enum {
    K3_POLICY_LRU,    /* "lru": one list for all layers */
    K3_POLICY_LAYERS, /* "layers": slots dealt to layers, an LRU inside each. topk slots for as many evenly spaced
                         layers as there are slots for; slots/layers each once every layer has topk */
    K3_POLICY_LFU,    /* "lfu": least frequently used with aging. A use count is halved at each visit of its layer;
                         the lowest leaves, and a miss with a count below every resident's passes through */
    K3_POLICY_COUNT
};

typedef struct k3_policy k3_policy;

/* "lru", "layers" or "lfu" for a kind, and back (-1 if unknown). */
const char *k3_policy_name(int kind);
int k3_policy_kind(const char *name);

/* A policy over slots 0..slots-1, all empty. Allocates everything it will ever
 * need. K3_EUSAGE for a bad kind or shape, K3_ESYS without memory. */
int k3_policy_new(k3_policy **policy, int kind, const k3_shape *shape, uint32_t slots, k3_err *err);
void k3_policy_free(k3_policy *policy);
/* Forgets everything: all slots empty, no history. */
void k3_policy_clear(k3_policy *policy);

/* The batch of a layer that `rows` positions go through together: reads
 * experts[rows][k], positions oldest first and each in router order, writes the
 * distinct ones in the policies' order and returns how many. distinct[] holds
 * at least min(rows * k, shape.experts) entries. */
int k3_policy_distinct(k3_policy *policy, const int32_t *experts, int rows, int k, int32_t *distinct);

/* Serves a batch of n distinct experts (numbers below shape.experts) of one
 * layer, in order of value. For each: hit[i] = 1 if it was resident, and
 * slot_of[i] = the slot that holds it or will, or -1 if it passes through. A
 * slot given to a miss may have held an expert that is now forgotten; its new
 * content must be read before the next batch is asked about. Returns the hits. */
int k3_policy_batch(k3_policy *policy, int layer, const int32_t *experts, int n, int32_t *slot_of, uint8_t *hit);

uint32_t k3_policy_slots(const k3_policy *policy);
/* Slot of a resident expert, or -1. */
int32_t k3_policy_slot(const k3_policy *policy, int layer, int expert);

#endif
