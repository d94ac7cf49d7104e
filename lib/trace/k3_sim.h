/* SPDX-License-Identifier: Apache-2.0 */
/* k3_sim.h - expert caches (k3_cache.h) simulated over recorded routing.
 *
 * Routing does not depend on the cache, so one trace answers for every policy
 * and size. Requests are collected from a trace (k3_requests), batched as the
 * engine makes them or one by one, and replayed.
 */
#ifndef K3_SIM_H
#define K3_SIM_H

#include "k3_cache.h"
#include "k3_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- requests ---------------------------------------------------------------- */

typedef struct k3_sim_batch {
    uint32_t n;      /* requests */
    uint16_t layer;
    bool counted;    /* false: warms the cache only */
} k3_sim_batch;

/* Requests of consecutive batches. id = (layer - first) * experts + expert. */
typedef struct k3_requests {
    uint32_t *id;
    k3_sim_batch *batch;
    uint64_t n, batches;
    bool batched;
    k3_shape shape;
    uint64_t id_room, batch_room; /* private from here on */
    uint8_t *seen;
    uint16_t *distinct;
} k3_requests;

/* `batched`: a layer's distinct experts in order of value (k3_distinct), as the
 * engine asks for them. Otherwise every choice is a request, in router order. */
int k3_requests_new(k3_requests *q, const k3_shape *shape, bool batched, k3_err *err);
int k3_requests_add(k3_requests *q, const k3_trace_batch *b, bool counted, k3_err *err);
void k3_requests_clear(k3_requests *q); /* empties, keeps the memory */
void k3_requests_free(k3_requests *q);

/* ---- one policy at one size ------------------------------------------------------ */

enum {
    K3_SIM_LRU,           /* lru */
    K3_SIM_LAYERS,        /* layers: the engine's, LRU dealt to layers */
    K3_SIM_LFU,           /* lfu: the engine's, with aging and admission */
    K3_SIM_FIFO,          /* fifo */
    K3_SIM_CLOCK,         /* clock */
    K3_SIM_RANDOM,        /* random, seeded */
    K3_SIM_SLRU,          /* slru: 4/5 protected */
    K3_SIM_2Q,            /* 2q: 1/4 in, 1/2 out */
    K3_SIM_ARC,           /* arc */
    K3_SIM_S3FIFO,        /* s3fifo: 1/10 small, promotion at the first reuse */
    K3_SIM_SIEVE,         /* sieve */
    K3_SIM_WTINYLFU,      /* wtinylfu: 1/100 window, exact counts halved every 10 x slots requests */
    K3_SIM_PIN,           /* pin: the hottest half of the slots held for ever, LRU for the rest; knows the future */
    K3_SIM_BELADY,        /* belady: farthest next use leaves, every miss is admitted; knows the future */
    K3_SIM_BELADY_BYPASS, /* belady-bypass: the same and may refuse a miss: no policy does better */
    K3_SIM_COUNT
};

/* The name on the command line, and back. */
const char *k3_sim_name(int kind);    /* kind: K3_SIM_* below K3_SIM_COUNT */
int k3_sim_kind(const char *name);    /* or -1 */
bool k3_sim_knows_future(int kind);   /* then k3_sim_run gets the whole trace in one call */

typedef struct k3_sim k3_sim;

/* Allocates all it needs except for policies that know the future. */
int k3_sim_new(k3_sim **sim, int kind, const k3_shape *shape, uint32_t slots, bool batched, uint64_t seed, k3_err *err);
/* Replays; policies that do not know the future may be given a trace in several calls. K3_ESYS without memory. */
int k3_sim_run(k3_sim *sim, const k3_requests *q, k3_err *err);
uint64_t k3_sim_hits(const k3_sim *sim); /* among counted requests */
void k3_sim_free(k3_sim *sim);

/* ---- LRU at all sizes in one pass ---------------------------------------------------- */

typedef struct k3_curve k3_curve;

/* Stack distances: the batch-aware LRU of k3_policy, or of single requests, at every size at once. */
int k3_curve_new(k3_curve **curve, const k3_shape *shape, bool batched, k3_err *err);
int k3_curve_run(k3_curve *curve, const k3_requests *q, k3_err *err);
/* Hits among counted requests with that many slots. O(slots) after a run, else O(1). */
uint64_t k3_curve_hits(k3_curve *curve, uint32_t slots);
/* Counted requests with stack distance d (the smallest number of slots that hits), 1 <= d <= all
 * experts; 0: those requested for the first time. */
uint64_t k3_curve_distance(const k3_curve *curve, uint32_t d);
/* Experts requested so far, in warm-up too. */
uint32_t k3_curve_distinct(const k3_curve *curve);
void k3_curve_free(k3_curve *curve);

#ifdef __cplusplus
}
#endif

#endif
