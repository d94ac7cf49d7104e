/* SPDX-License-Identifier: Apache-2.0 */
/* experts.h - routed experts on their way through memory: which stay in cache slots, which pass through a buffer, which
 * are read on a guess before the router has chosen, and in what order the forward pass gets them.
 *
 * A state machine: it starts no thread, opens no file and knows no clock. Calls on one must not overlap; the caller has
 * a lock. The cache sees only what the router chose, so hits, evictions and traces are the same with any lookahead.
 *
 *   experts_expect -> QUEUED (a guess)      experts_want -> QUEUED, or READY if cached, or a guess taken over as it is
 *   QUEUED -> experts_pick -> READING -> experts_landed -> LANDED -> experts_pick_check -> CHECKING
 *          -> experts_finish -> READY -> experts_hand_out -> experts_release
 */
#ifndef EXPERTS_H
#define EXPERTS_H

#include "k3_cache.h"
#include "k3_source.h"
#include "stream.h"

enum expert_state { EXPERT_FREE, EXPERT_QUEUED, EXPERT_READING, EXPERT_LANDED, EXPERT_CHECKING, EXPERT_READY, EXPERT_FAILED };

/* Who will use it. The router may pass over a guess whose read is on its way: then nobody will. */
enum expert_user { FOR_ROUTER, FOR_GUESS, FOR_NOBODY };

/* One expert to read, of the router's batch or of the guesses at the next. */
struct expert_job {
    enum expert_state state;
    enum expert_user user;
    bool handed_out;
    bool complete;           /* all bytes are in memory, checked or not */
    int layer;
    uint16_t number;
    int32_t slot;            /* cache slot, -1: it passes through */
    int32_t buffer;          /* of those for experts without a slot; -1: none */
    uint64_t file_order;     /* grows along the files; not of a guess, which is read in order of likelihood */
    uint64_t arrival;        /* 0: was cached; else counts those that came, from 1 */
    const uint8_t *part[K3_PARTS];
};

struct expert_slot {
    uint8_t *memory;
    int32_t layer;           /* of the expert it holds, -1 while it holds none that is whole */
    uint16_t number;
    const uint8_t *part[K3_PARTS];
};

struct expert_params {
    k3_shape shape;
    int policy;              /* K3_POLICY_* */
    uint32_t slots;          /* of the cache */
    uint32_t transit;        /* buffers for experts that pass through, >= 1 */
    uint32_t lookahead;      /* guesses at most, each with a buffer */
    uint64_t room;           /* memory of one expert */
    uint64_t bytes;          /* weight bytes of one */
    uint64_t (*file_order)(const void *arg, int layer, uint16_t number);
    const void *arg;
};

struct expert_counts {
    uint64_t requests, hits, evictions;
    uint64_t bytes;          /* weights read for the router */
    struct guess_counts guesses;
};

struct experts {
    struct expert_params p;
    k3_policy *policy;       /* NULL: the run has no layer with experts */
    struct expert_slot *slot;
    uint8_t **buffer;        /* [transit + lookahead]; slots and buffers trade their memory */
    bool *buffer_used;
    struct expert_job **job; /* [shape.experts] the batch: own jobs, and guesses that were right */
    struct expert_job *own, *guess; /* [shape.experts], [lookahead] */
    size_t njobs;
    size_t next_job;         /* those before it are not to be picked */
    size_t handed_out;
    bool ascending;
    uint64_t arrivals;
    int32_t *slot_of;        /* [shape.experts] from the policy */
    uint8_t *hit;            /* [shape.experts] from the policy */
    struct expert_counts count;
};

/* Bytes of memory for experts_init(). */
uint64_t experts_memory(const struct expert_params *p);
/* `memory` stays the caller's. */
int experts_init(struct experts *x, const struct expert_params *p, uint8_t *memory, k3_err *err);
void experts_free(struct experts *x);

/* ---- events of the forward pass ---- */

/* A guess at the next batch, the likeliest first; guesses before it that nobody took are forgotten. The batch before is
 * done with. */
void experts_expect(struct experts *x, int layer, const uint16_t *experts, size_t n);
/* The router chose: n distinct experts in the cache policy's order. They are handed out in ascending number, or as they
 * come. Wrong guesses are given up. */
void experts_want(struct experts *x, int layer, const uint16_t *experts, size_t n, bool ascending);
/* The one to hand out now, or NULL: not read yet. All n of a batch can be had. */
struct expert_job *experts_next(struct experts *x);
void experts_hand_out(struct experts *x, struct expert_job *j, k3_expert *out);
/* It is used; true if that made a buffer free. */
bool experts_release(struct experts *x, struct expert_job *j);
/* The run is over: guesses that nobody will ask for are counted. No read is going on. */
void experts_end(struct experts *x);

/* ---- events of the readers ---- */

/* What the router waits for and can be read now, marked READING with the memory to read to; or NULL. */
struct expert_job *experts_pick(struct experts *x, uint8_t **to);
/* The same of the guesses. */
struct expert_job *experts_pick_guess(struct experts *x, uint8_t **to);
/* It was read and is to be checked. False: nobody wants it any more, nothing is to be done. */
bool experts_landed(struct experts *x, struct expert_job *j);
/* The landed one that is needed first, marked CHECKING, or NULL. */
struct expert_job *experts_pick_check(struct experts *x);
/* Read and checked (`ok`), or one of them failed; `complete`: the read did not. False if the run must end: the router
 * wants it and it cannot be had. A guess that failed is forgotten; if the router wants it, it is read again. */
bool experts_finish(struct experts *x, struct expert_job *j, bool ok, bool complete);

#endif
