/* SPDX-License-Identifier: Apache-2.0 */
/* Policies over one list: FIFO, CLOCK, random, SIEVE, and popularity pin + LRU. */
#include "sim_policies.h"

#include <stdlib.h>

enum { VISITED = 1 << BITS_SHIFT, PINNED = 2 << BITS_SHIFT };

static inline void evict_from(k3_sim *s, int list, uint32_t id)
{
    sim_unlink(s, list, id);
    s->where[id] = 0;
    s->held--;
}

static inline void admit(k3_sim *s, int list, uint32_t id)
{
    sim_push(s, list, id);
    s->where[id] = RESIDENT;
    s->held++;
}

/* ---- FIFO ---- */

static inline void fifo_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)s, (void)id, (void)batched;
}

static inline void fifo_insert(k3_sim *s, uint32_t id, bool batched)
{
    if (s->held == s->slots)
        evict_from(s, 0, sim_last(s, 0, batched));
    admit(s, 0, id);
}

SIM_RUN(fifo)

/* ---- CLOCK: a FIFO whose last gets another round if it was used ---- */

static inline void clock_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    s->where[id] |= VISITED;
}

static inline void clock_insert(k3_sim *s, uint32_t id, bool batched)
{
    while (s->held == s->slots) {
        uint32_t last = sim_last(s, 0, batched);
        if (!(s->where[last] & VISITED)) {
            evict_from(s, 0, last);
            break;
        }
        s->where[last] &= (uint8_t)~VISITED;
        sim_move_first(s, 0, last);
    }
    admit(s, 0, id);
}

SIM_RUN(clock)

/* ---- random ---- */

static inline uint32_t random_below(k3_sim *s, uint32_t n)
{
    s->rng ^= s->rng << 13;
    s->rng ^= s->rng >> 7;
    s->rng ^= s->rng << 17;
    return (uint32_t)((s->rng >> 32) * n >> 32);
}

static inline void random_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)s, (void)id, (void)batched;
}

static inline void random_insert(k3_sim *s, uint32_t id, bool batched)
{
    uint32_t at = s->held;
    if (s->held == s->slots) {
        at = random_below(s, s->slots);
        while (batched && s->mark[s->slot[at]] == s->now)
            at = at + 1 < s->slots ? at + 1 : 0;
        s->where[s->slot[at]] = 0;
    } else {
        s->held++;
    }
    s->slot[at] = id;
    s->where[id] = RESIDENT;
}

SIM_RUN(random)

/* ---- SIEVE: the hand moves from old to new, sparing what was used; nothing else moves ---- */

static inline void sieve_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    s->where[id] |= VISITED;
}

static inline void sieve_insert(k3_sim *s, uint32_t id, bool batched)
{
    uint32_t head = head_of(s, 0), at = s->held ? s->hand : head;
    while (s->held == s->slots) {
        if (at == head)
            at = s->link[head].prev;
        uint32_t newer = s->link[at].prev;
        if (!(batched && s->mark[at] == s->now)) {
            if (!(s->where[at] & VISITED))
                evict_from(s, 0, at);
            else
                s->where[at] &= (uint8_t)~VISITED;
        }
        at = newer;
    }
    s->hand = at;
    admit(s, 0, id);
}

SIM_RUN(sieve)

/* ---- the hottest pinned, LRU for the others ---- */

struct use_count {
    uint32_t uses, id;
    uint64_t first;
};

static int by_uses(const void *a, const void *b)
{
    const struct use_count *x = a, *y = b;
    if (x->uses != y->uses)
        return x->uses < y->uses ? 1 : -1;
    return x->first < y->first ? -1 : 1;
}

/* Marks the cap[0] hottest, of equals the one met first. */
static int pin_choose(k3_sim *s, const k3_requests *q, k3_err *err)
{
    struct use_count *hot = calloc(s->nids, sizeof *hot);
    uint32_t distinct = 0;
    if (!hot)
        return k3_fail(err, K3_ESYS, "out of memory to count uses");
    for (uint64_t i = 0; i < q->n; i++) {
        struct use_count *h = &hot[q->id[i]];
        if (!h->uses++) {
            h->first = i;
            h->id = q->id[i];
        }
    }
    for (uint32_t i = 0; i < s->nids; i++)
        if (hot[i].uses)
            hot[distinct++] = hot[i];
    qsort(hot, distinct, sizeof *hot, by_uses);
    if (s->cap[0] > distinct)
        s->cap[0] = distinct;
    for (uint32_t i = 0; i < s->cap[0]; i++)
        s->where[hot[i].id] = PINNED;
    free(hot);
    return 0;
}

static inline void pin_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    if (!(s->where[id] & PINNED))
        sim_move_first(s, 0, id);
}

static inline void pin_insert(k3_sim *s, uint32_t id, bool batched)
{
    if (s->where[id] & PINNED) {
        s->where[id] |= RESIDENT; /* its slot is reserved; only the first use is a miss */
        return;
    }
    if (s->held == s->slots - s->cap[0]) {
        uint32_t last = sim_last(s, 0, batched);
        if (last == head_of(s, 0))
            return;
        evict_from(s, 0, last);
    }
    admit(s, 0, id);
}

int k3_sim_pin(k3_sim *s, const k3_requests *q, k3_err *err)
{
    int status = pin_choose(s, q, err);
    if (!status)
        sim_loop(s, q, pin_touch, pin_insert);
    return status;
}
