/* SPDX-License-Identifier: Apache-2.0 */
/* Belady's policy over the set of next uses.
 *
 * An expert is known by the time of its next use, and no two share one, so the
 * residents are a set of times: a hit is "this time is in the set", the victim
 * is its largest member. As bits with summaries of 64, each step touches a few
 * words; ids are needed only to find next uses. Residents that are never used
 * again are merely counted. */
#include "sim_policies.h"

#include <stdlib.h>
#include <string.h>

enum { LEVELS = 6 };

static int allocate(k3_sim *s, uint64_t n, k3_err *err)
{
    for (int i = 0; i < LEVELS; i++) {
        n = n / 64 + 1;
        free(s->bits[i]);
        if (!(s->bits[i] = calloc(n, sizeof **s->bits)))
            return k3_fail(err, K3_ESYS, "out of memory for the future of %llu requests", (unsigned long long)n * 64);
    }
    return 0;
}

static inline void set(k3_sim *s, uint64_t t)
{
    for (int i = 0; i < LEVELS; i++, t /= 64) {
        uint64_t old = s->bits[i][t / 64];
        s->bits[i][t / 64] = old | 1ull << t % 64;
        if (old)
            return;
    }
}

static inline void clear(k3_sim *s, uint64_t t)
{
    for (int i = 0; i < LEVELS; i++, t /= 64)
        if (s->bits[i][t / 64] &= ~(1ull << t % 64))
            return;
}

/* Largest member; the set is not empty. */
static inline uint64_t largest(const k3_sim *s)
{
    uint64_t t = 0;
    for (int i = LEVELS - 1; i >= 0; i--)
        t = t * 64 + 63 - (uint64_t)__builtin_clzll(s->bits[i][t]);
    return t;
}

static inline bool member(const k3_sim *s, uint64_t t)
{
    return s->bits[0][t / 64] >> t % 64 & 1;
}

struct state {
    const uint32_t *next; /* [n] time of the next request for the same id, or NEVER */
    uint64_t held, idle;  /* residents, and those of them that are never used again */
};

enum { NEVER = UINT32_MAX };

static inline void add(k3_sim *s, struct state *st, uint64_t t)
{
    st->held++;
    if (st->next[t] == NEVER)
        st->idle++;
    else
        set(s, st->next[t]);
}

static inline void drop_farthest(k3_sim *s, struct state *st)
{
    st->held--;
    if (st->idle)
        st->idle--;
    else
        clear(s, largest(s));
}

/* Takes the expert requested at time t out of the set; whether it was in. */
static inline bool take(k3_sim *s, struct state *st, uint64_t t)
{
    if (!member(s, t))
        return false;
    clear(s, t);
    st->held--;
    return true;
}

static inline void make_room(k3_sim *s, struct state *st, uint64_t wanted)
{
    while (st->held + wanted > s->slots)
        drop_farthest(s, st);
}

static inline uint32_t serve_one(k3_sim *s, struct state *st, uint64_t t, bool bypass)
{
    bool hit = take(s, st, t);
    if (!hit && !bypass && s->slots)
        make_room(s, st, 1);
    if (hit || s->slots)
        add(s, st, t);
    if (bypass)
        make_room(s, st, 0);
    return hit;
}

/* Requests t..t+n-1 as one batch. With bypass, the best that fit of everything
 * at hand are kept; without, own experts stay and the first misses that fit are admitted. */
static inline uint32_t serve_batch(k3_sim *s, struct state *st, uint64_t t, uint32_t n, bool bypass)
{
    uint32_t hits = 0;
    for (uint32_t i = 0; i < n; i++)
        hits += s->hit[i] = take(s, st, t + i);
    uint32_t room = s->slots - hits, admitted = bypass ? n - hits : n - hits < room ? n - hits : room;
    if (!bypass)
        make_room(s, st, hits + admitted);
    for (uint32_t i = 0; i < n; i++)
        if (s->hit[i] || admitted) {
            admitted -= !s->hit[i];
            add(s, st, t + i);
        }
    make_room(s, st, 0);
    return hits;
}

static uint32_t *find_next(const k3_sim *s, const k3_requests *q, k3_err *err)
{
    uint32_t *next = malloc((q->n + 1) * sizeof *next), *last = malloc((size_t)s->nids * sizeof *last);
    if (!next || !last || q->n >= NEVER) {
        k3_fail(err, K3_ESYS, "out of memory for the future of %llu requests", (unsigned long long)q->n);
        free(next);
        free(last);
        return NULL;
    }
    memset(last, 0xff, (size_t)s->nids * sizeof *last);
    for (uint64_t i = q->n; i-- > 0;) {
        next[i] = last[q->id[i]];
        last[q->id[i]] = (uint32_t)i;
    }
    free(last);
    return next;
}

int k3_sim_belady(k3_sim *s, const k3_requests *q, bool bypass, k3_err *err)
{
    uint32_t *next = find_next(s, q, err);
    if (!next)
        return K3_ESYS;
    int status = allocate(s, q->n, err);
    free(s->hit);
    if (!status && !(s->hit = malloc((size_t)s->shape.experts)))
        status = k3_fail(err, K3_ESYS, "out of memory");
    struct state st = {.next = next};
    uint64_t t = 0;
    for (uint64_t b = 0; b < q->batches && !status; b++) {
        uint32_t n = q->batch[b].n, hits = 0;
        if (s->batched)
            hits = serve_batch(s, &st, t, n, bypass);
        else
            for (uint32_t i = 0; i < n; i++)
                hits += serve_one(s, &st, t + i, bypass);
        s->hits += q->batch[b].counted ? hits : 0;
        t += n;
    }
    free(next);
    return status;
}
