/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated cache: lists over expert ids, and the loop over requests that each
 * policy is compiled into. */
#ifndef K3_TRACE_SIM_STATE_H
#define K3_TRACE_SIM_STATE_H

#include "k3_sim.h"

enum { MAX_LISTS = 4 };

struct link {
    uint32_t prev, next;
};

struct k3_sim {
    int kind;
    k3_shape shape;
    uint32_t slots, nids;
    bool batched;
    uint64_t hits;
    uint8_t *where;      /* [nids] 0 = not resident; bits below are the policy's */
    struct link *link;   /* [nids + MAX_LISTS] ids in lists, then the lists' heads */
    uint32_t *mark, now; /* [nids] mark == now: in the current batch, must not leave */
    uint32_t count[MAX_LISTS];
    uint32_t held;       /* residents */
    /* the rest by policy */
    uint32_t cap[2];     /* segments */
    uint32_t hand;       /* sieve */
    uint32_t target;     /* arc */
    uint32_t *slot;      /* random: [slots] ids */
    uint64_t rng;
    uint32_t *freq;      /* wtinylfu: [nids] count and the period it is of */
    uint32_t period;
    uint64_t accesses;
    k3_policy *policy;   /* the engine's */
    uint16_t *experts;
    int32_t *slot_of;
    uint8_t *hit;
    uint64_t *bits[6];   /* belady: times of next use, level 0, and its summaries */
};

/* bits of where[]: resident, visited or counters, and the list */
enum { RESIDENT = 0x80, LIST_MASK = 0x03, IN_LIST = 0x04, BITS_SHIFT = 4, BITS_MASK = 0x30 };

static inline uint32_t head_of(const k3_sim *s, int list)
{
    return s->nids + (uint32_t)list;
}

static inline void sim_unlink(k3_sim *s, int list, uint32_t id)
{
    s->link[s->link[id].prev].next = s->link[id].next;
    s->link[s->link[id].next].prev = s->link[id].prev;
    s->count[list]--;
}

static inline void sim_push(k3_sim *s, int list, uint32_t id)
{
    uint32_t head = head_of(s, list), next = s->link[head].next;
    s->link[id] = (struct link){.prev = head, .next = next};
    s->link[next].prev = id;
    s->link[head].next = id;
    s->count[list]++;
}

static inline void sim_move_first(k3_sim *s, int list, uint32_t id)
{
    sim_unlink(s, list, id);
    sim_push(s, list, id);
}

/* The last of the list that may leave, or the head if there is none. */
static inline uint32_t sim_last(const k3_sim *s, int list, bool batched)
{
    uint32_t head = head_of(s, list), id = s->link[head].prev;
    while (batched && id != head && s->mark[id] == s->now)
        id = s->link[id].prev;
    return id;
}

typedef void sim_fn(k3_sim *s, uint32_t id, bool batched);

/* The loop over requests. Hits of a batch are decided before anything leaves;
 * own experts never leave; the first misses that fit are admitted; the most
 * valuable is handled last, so that it is the most recent. */
static inline __attribute__((always_inline)) void sim_batch(k3_sim *s, const uint32_t *id, uint32_t n, bool counted,
                                                            sim_fn *touch, sim_fn *insert)
{
    uint32_t hits = 0, misses = 0, last = 0;
    s->now++;
    for (uint32_t i = 0; i < n; i++) {
        s->mark[id[i]] = s->now;
        hits += s->where[id[i]] >> 7;
    }
    for (uint32_t i = 0; i < n && misses < s->slots - hits; i++)
        if (!(s->where[id[i]] & RESIDENT)) {
            misses++;
            last = i + 1;
        }
    for (uint32_t i = n; i-- > 0;) {
        if (s->where[id[i]] & RESIDENT)
            touch(s, id[i], true);
        else if (i < last)
            insert(s, id[i], true);
    }
    s->hits += counted ? hits : 0;
}

static inline __attribute__((always_inline)) void sim_loop(k3_sim *s, const k3_requests *q, sim_fn *touch, sim_fn *insert)
{
    const uint32_t *id = q->id;
    for (uint64_t b = 0; b < q->batches; id += q->batch[b++].n) {
        uint32_t n = q->batch[b].n, hits = 0;
        if (s->batched) {
            sim_batch(s, id, n, q->batch[b].counted, touch, insert);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            bool hit = s->where[id[i]] & RESIDENT;
            hits += hit;
            if (hit)
                touch(s, id[i], false);
            else if (s->slots)
                insert(s, id[i], false);
        }
        s->hits += q->batch[b].counted ? hits : 0;
    }
}

/* One definition a policy: k3_sim_NAME from NAME_touch and NAME_insert. */
#define SIM_RUN(name)                                    \
    void k3_sim_##name(k3_sim *s, const k3_requests *q)     \
    {                                                    \
        sim_loop(s, q, name##_touch, name##_insert);     \
    }

#endif
