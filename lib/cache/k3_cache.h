/* SPDX-License-Identifier: Apache-2.0 */
/* k3_cache.h - which experts stay in memory: the policies that k3-decode's expert
 * cache and the simulator (k3_sim.h) share.
 *
 * An expert is a (layer, number) pair; layers are the model's, from 0, and
 * those below k3_shape.first have no experts. All experts have one size, so a
 * cache is counted in slots. Nothing here holds an expert or reads one.
 */
#ifndef K3_CACHE_H
#define K3_CACHE_H

#include "k3_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where a model's experts are. */
typedef struct k3_shape {
    int layers;   /* layers of the model, at most 65535 */
    int first;    /* first layer that has experts; first < layers */
    int experts;  /* experts in each such layer, 1..65535 */
    int topk;     /* experts that one position uses in a layer, 1..experts */
} k3_shape;

/* ---- batches ------------------------------------------------------------------------
 * A batch is what one layer needs at once: one position's experts, or the
 * distinct experts of all positions of a chunk. Its order is one of value, the
 * most valuable first: the last position's experts as the router ranked them,
 * then the position before, and so on. The last position is what the next token
 * resembles most, and high ranks return more often than low ones (0.74 for the
 * first, 0.22 for the sixteenth of K3's recorded decode): keeping a prompt's last
 * positions rather than its first is worth 5 points of hit rate at 30 slots a layer. */

/* The batch of a layer that `rows` positions go through together: reads
 * experts[rows][k], positions oldest first and each in router order, writes the
 * distinct ones in order of value and returns how many: at most rows * k, at most
 * the layer's experts. seen[experts of the layer] is scratch of the caller's: all
 * 0 before the call, and again after it. */
size_t k3_distinct(uint8_t *seen, const uint16_t *experts, size_t rows, size_t k, uint16_t *distinct);

/* ---- policies -----------------------------------------------------------------------
 * Rules, for every policy:
 *   - hits are decided before anything is evicted;
 *   - a batch never evicts its own;
 *   - a miss gets a slot or passes through (is read, used and forgotten). With
 *     fewer slots than the batch the first misses are kept;
 *   - recency is the batch's order (first = most recent), never order of arrival;
 *   - 0 slots is legal: everything passes through.
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
#define K3_POLICY_WORDS "lru|layers|lfu" /* the names, in the order of the numbers */
const char *k3_policy_name(int kind);
int k3_policy_kind(const char *name);

/* A policy over slots 0..slots-1, all empty. Allocates everything it will ever
 * need. K3_EUSAGE for a bad kind or shape, K3_ESYS without memory. */
int k3_policy_new(k3_policy **policy, int kind, const k3_shape *shape, uint32_t slots, k3_err *err);
void k3_policy_free(k3_policy *policy);
/* Forgets everything: all slots empty, no history. */
void k3_policy_clear(k3_policy *policy);

/* Serves a batch of n distinct experts (numbers below shape.experts) of one
 * layer, in order of value (k3_distinct). For each: hit[i] = 1 if it was resident,
 * and slot_of[i] = the slot that holds it or will, or -1 if it passes through. A
 * slot given to a miss may have held an expert that is now forgotten; its new
 * content must be read before the next batch is asked about. Returns the hits. */
int k3_policy_batch(k3_policy *policy, int layer, const uint16_t *experts, int n, int32_t *slot_of, uint8_t *hit);

/* How many slots it was made for. */
uint32_t k3_policy_slots(const k3_policy *policy);
/* Slot of a resident expert, or -1. */
int32_t k3_policy_slot(const k3_policy *policy, int layer, int expert);

#ifdef __cplusplus
}
#endif

#endif
