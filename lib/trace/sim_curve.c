/* SPDX-License-Identifier: Apache-2.0 */
/* LRU at every size in one pass.
 *
 * An expert hits with S slots if fewer than S others are more recent: its stack
 * distance is 1 + their number. Recency is a stamp; the stamps in use are bits,
 * counted by word and by group of 64 words, so a distance is a few sums and an
 * update two increments. When stamps run out, they are dealt anew in order.
 *
 * Batches make one exception. With fewer slots than the batch, what stays is
 * "the hits and the first misses", not the most recent. For the sizes below
 * `dirty` the contents are therefore kept explicitly: top[i] is what i + 1
 * slots hold and i slots do not (larger caches include smaller ones also here). */
#include "k3_sim.h"

#include <stdlib.h>
#include <string.h>

enum { NONE = UINT32_MAX };

struct k3_curve {
    k3_shape shape;
    bool batched;
    uint32_t nids;
    uint32_t stamps;    /* capacity, a multiple of 4096 */
    uint32_t now, live; /* next stamp; stamps in use */
    uint32_t *stamp;    /* [nids] or NONE */
    uint32_t *owner;    /* [stamps] id */
    uint64_t *bits;     /* [stamps / 64] */
    uint8_t *words;     /* [stamps / 64] bits set */
    uint32_t *groups;   /* [stamps / 4096] bits set */
    uint64_t *count;    /* [nids + 1] counted requests by distance, 0 = first request */
    uint64_t *hits;     /* [nids + 1] running sums of count, valid unless stale */
    bool stale;
    uint32_t dirty;       /* sizes 1..dirty-1 are in top[]: as many as the largest batch that still matters */
    uint32_t mark;        /* the stamp that followed the last batch of `dirty` experts */
    uint32_t since;       /* distinct experts that smaller batches asked for since then */
    uint32_t largest;     /* experts in the largest of those smaller batches */
    uint32_t *top;        /* [experts] */
    uint32_t *distance;   /* [experts] of the current batch, then scratch by distance */
    uint32_t *by_distance, *merged, *waiting; /* [experts + 1] scratch */
};

int k3_curve_new(k3_curve **out, const k3_shape *shape, bool batched, k3_err *err)
{
    *out = NULL;
    k3_curve *c = calloc(1, sizeof *c);
    if (!c)
        return k3_fail(err, K3_ESYS, "out of memory for stack distances");
    size_t experts = (size_t)shape->experts + 1;
    c->shape = *shape;
    c->batched = batched;
    c->nids = (uint32_t)(shape->layers - shape->first) * (uint32_t)shape->experts;
    c->stamps = (uint32_t)(((uint64_t)c->nids * 3 + 65536) / 4096 * 4096);
    c->stamp = malloc(c->nids * sizeof *c->stamp);
    c->owner = malloc((size_t)c->stamps * sizeof *c->owner);
    c->bits = calloc(c->stamps / 64, sizeof *c->bits);
    c->words = calloc(c->stamps / 64, sizeof *c->words);
    c->groups = calloc(c->stamps / 4096 + 1, sizeof *c->groups);
    c->count = calloc((size_t)c->nids + 1, sizeof *c->count);
    c->hits = calloc((size_t)c->nids + 1, sizeof *c->hits);
    c->top = malloc(experts * sizeof *c->top);
    c->distance = malloc(experts * sizeof *c->distance);
    c->by_distance = malloc(experts * sizeof *c->by_distance);
    c->merged = malloc(experts * sizeof *c->merged);
    c->waiting = malloc(experts * sizeof *c->waiting);
    if (!c->stamp || !c->owner || !c->bits || !c->words || !c->groups || !c->count || !c->hits || !c->top ||
        !c->distance || !c->by_distance || !c->merged || !c->waiting) {
        k3_curve_free(c);
        return k3_fail(err, K3_ESYS, "out of memory for stack distances of %u experts", c->nids);
    }
    memset(c->stamp, 0xff, c->nids * sizeof *c->stamp);
    c->dirty = 1;
    *out = c;
    return 0;
}

void k3_curve_free(k3_curve *c)
{
    if (!c)
        return;
    free(c->stamp);
    free(c->owner);
    free(c->bits);
    free(c->words);
    free(c->groups);
    free(c->count);
    free(c->hits);
    free(c->top);
    free(c->distance);
    free(c->by_distance);
    free(c->merged);
    free(c->waiting);
    free(c);
}

static inline uint32_t count_bits(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555;
    x = (x & 0x3333333333333333) + (x >> 2 & 0x3333333333333333);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return (uint32_t)(x * 0x0101010101010101 >> 56);
}

/* Sum of the word counts from word w + 1 to the end of its group. */
static inline uint32_t rest_of_group(const uint8_t *words, uint32_t w)
{
    const uint64_t even = 0x00ff00ff00ff00ff;
    uint64_t sum = 0, v;
    uint32_t at = w & ~7u, end = (w & ~63u) + 64;
    memcpy(&v, words + at, 8);
    v = w % 8 == 7 ? 0 : v >> 8 * (w % 8 + 1); /* little-endian: drops words up to w */
    sum = (v & even) + (v >> 8 & even);
    for (at += 8; at < end; at += 8) {
        memcpy(&v, words + at, 8);
        sum += (v & even) + (v >> 8 & even);
    }
    return (uint32_t)(sum * 0x0001000100010001 >> 48);
}

/* 1 + the number of stamps in use after `stamp`. */
static inline uint32_t distance_of(const k3_curve *c, uint32_t stamp)
{
    uint32_t w = stamp / 64, g = stamp / 4096, last = (c->now - 1) / 4096;
    uint64_t above = stamp % 64 == 63 ? 0 : c->bits[w] >> (stamp % 64 + 1);
    uint32_t n = 1 + count_bits(above) + rest_of_group(c->words, w);
    for (g++; g <= last; g++)
        n += c->groups[g];
    return n;
}

static inline void drop_stamp(k3_curve *c, uint32_t stamp)
{
    c->bits[stamp / 64] &= ~(1ull << stamp % 64);
    c->words[stamp / 64]--;
    c->groups[stamp / 4096]--;
    c->live--;
}

/* Deals the stamps in use anew, from 0, in the same order. */
static void compact(k3_curve *c)
{
    uint32_t to = 0;
    for (uint32_t w = 0; w < c->stamps / 64; w++)
        for (uint64_t b = c->bits[w]; b; b &= b - 1) {
            uint32_t id = c->owner[w * 64 + (uint32_t)__builtin_ctzll(b)];
            c->owner[to] = id;
            c->stamp[id] = to++;
        }
    memset(c->bits, 0, c->stamps / 64 * sizeof *c->bits);
    memset(c->words, 0, c->stamps / 64);
    memset(c->groups, 0, c->stamps / 4096 * sizeof *c->groups);
    for (uint32_t i = 0; i < to; i++) {
        c->bits[i / 64] |= 1ull << i % 64;
        c->words[i / 64]++;
        c->groups[i / 4096]++;
    }
    c->now = to;
    c->mark = to; /* counts distinct ones from here: fewer than there were, which is safe */
    c->since = 0;
}

static inline void use(k3_curve *c, uint32_t id)
{
    uint32_t s = c->now++;
    if (c->stamp[id] != NONE)
        drop_stamp(c, c->stamp[id]);
    c->stamp[id] = s;
    c->owner[s] = id;
    c->bits[s / 64] |= 1ull << s % 64;
    c->words[s / 64]++;
    c->groups[s / 4096]++;
    c->live++;
}

/* ---- sizes smaller than a batch ------------------------------------------------------ */

/* Order of the batch on the small sizes: with s slots, the hits among them and
 * then the first others. distance[] is the batch's. */
static void merge_batch(k3_curve *c, const uint32_t *id, uint32_t n)
{
    memset(c->by_distance, 0xff, (n + 1) * sizeof *c->by_distance);
    for (uint32_t i = 0; i < n; i++)
        if (c->distance[i] && c->distance[i] <= n)
            c->by_distance[c->distance[i]] = i;
    uint32_t next = 0;
    for (uint32_t i = 0; i < n; i++)
        c->waiting[i] = true;
    for (uint32_t s = 1; s <= n; s++) {
        uint32_t i = c->by_distance[s];
        if (i == NONE || !c->waiting[i]) {
            while (!c->waiting[next])
                next++;
            i = next;
        }
        c->waiting[i] = false;
        c->merged[s - 1] = id[i];
    }
}

static bool in_batch(const uint32_t *id, uint32_t n, uint32_t x)
{
    for (uint32_t i = 0; i < n; i++)
        if (id[i] == x)
            return true;
    return false;
}

/* Takes the most recent of waiting[0..*n). */
static uint32_t most_recent(k3_curve *c, uint32_t *n)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < *n; i++)
        if (c->stamp[c->waiting[i]] > c->stamp[c->waiting[best]])
            best = i;
    uint32_t id = c->waiting[best];
    c->waiting[best] = c->waiting[--*n];
    return id;
}

/* Contents of the sizes n..dirty-1 after the batch: all of it, then the most
 * recent of what the size held. Into merged[n ..]. Stamps are from before the batch. */
static void merge_rest(k3_curve *c, const uint32_t *id, uint32_t n)
{
    uint32_t waiting = 0;
    for (uint32_t s = 1; s < c->dirty; s++) {
        if (!in_batch(id, n, c->top[s - 1]))
            c->waiting[waiting++] = c->top[s - 1];
        if (s > n)
            c->merged[s - 1] = most_recent(c, &waiting);
    }
}

static void update_top(k3_curve *c, const uint32_t *id, uint32_t n)
{
    bool plain = n >= c->dirty;
    for (uint32_t i = 0; i < n && plain; i++)
        plain = !c->distance[i] || c->distance[i] > n;
    if (plain) {
        memcpy(c->top, id, (n - 1) * sizeof *id);
    } else {
        merge_batch(c, id, n);
        if (c->dirty > n + 1)
            merge_rest(c, id, n);
        uint32_t size = (c->dirty > n ? c->dirty : n) - 1;
        memcpy(c->top, c->merged, size * sizeof *c->top);
    }
    if (n >= c->dirty) {
        c->dirty = n;
        c->since = c->largest = 0;
        c->mark = c->now + n; /* the batch itself gets the stamps before this one */
        return;
    }
    if (n > c->largest)
        c->largest = n;
    for (uint32_t i = 0; i < n; i++)
        c->since += c->stamp[id[i]] == NONE || c->stamp[id[i]] < c->mark;
    /* Once that many have come since, every size from the largest of their batches on holds the most recent. */
    if (c->since >= c->dirty - 1) {
        c->dirty = c->largest;
        c->since = c->largest = 0;
        c->mark = c->now + n;
    }
}

static uint32_t place_in_top(const k3_curve *c, uint32_t id)
{
    for (uint32_t i = 0; i + 1 < c->dirty; i++)
        if (c->top[i] == id)
            return i + 1;
    return c->dirty;
}

static void run_batch(k3_curve *c, const uint32_t *id, uint32_t n, bool counted)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = c->stamp[id[i]] == NONE ? 0 : distance_of(c, c->stamp[id[i]]);
        if (d && d <= c->dirty && c->dirty > 1)
            d = place_in_top(c, id[i]);
        c->distance[i] = d;
        c->count[d] += counted;
    }
    update_top(c, id, n);
    for (uint32_t i = n; i-- > 0;)
        use(c, id[i]);
}

int k3_curve_run(k3_curve *c, const k3_requests *q, k3_err *err)
{
    const uint32_t *id = q->id;
    (void)err;
    c->stale = true;
    for (uint64_t b = 0; b < q->batches; id += q->batch[b++].n) {
        uint32_t n = q->batch[b].n;
        bool counted = q->batch[b].counted;
        if (c->batched) {
            if (c->now + n > c->stamps)
                compact(c);
            run_batch(c, id, n, counted);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            if (c->now == c->stamps)
                compact(c);
            uint32_t s = c->stamp[id[i]];
            c->count[s == NONE ? 0 : distance_of(c, s)] += counted;
            use(c, id[i]);
        }
    }
    return 0;
}

uint64_t k3_curve_hits(k3_curve *c, uint32_t slots)
{
    if (c->stale) {
        c->hits[0] = 0;
        for (uint32_t d = 1; d <= c->nids; d++)
            c->hits[d] = c->hits[d - 1] + c->count[d];
        c->stale = false;
    }
    return c->hits[slots < c->nids ? slots : c->nids];
}

uint64_t k3_curve_distance(const k3_curve *c, uint32_t d)
{
    return d <= c->nids ? c->count[d] : 0;
}

uint32_t k3_curve_distinct(const k3_curve *c)
{
    return c->live;
}
