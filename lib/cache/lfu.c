/* SPDX-License-Identifier: Apache-2.0 */
/* LFU with aging, in visits of an expert's own layer.
 *
 * A use at place i of n makes the score 1 + (1 - i/n) 3/4 + past/4, where past
 * is the score before; every visit of the layer halves it. Counting in the
 * layer's own visits is what makes it fair: layers come round in a fixed cycle,
 * so in any global clock the layer visited next looks oldest, and a cache below
 * one token's working set would throw out exactly what it needs next.
 *
 * A score at its last use lies in [1, 2), so after `age` visits in
 * [2^-age, 2^(1-age)): the order is by age, then by the fraction. Ages grow
 * together, so a layer's residents stay sorted in a list whose end is the
 * layer's lowest, and a tournament over the layers finds the lowest of all. */
#include "lfu.h"

#include <stdlib.h>
#include <string.h>

enum { RANK_SHARE = 49152 }; /* of 65536: how much of a score's fraction the rank decides; the past has the rest */

struct lfu {
    uint32_t *visit;    /* [layers with experts] */
    uint32_t *last;     /* [ids] the layer's visit of the last use, 0 = never */
    uint16_t *fraction; /* [ids] of the score at its last use, of 65536 */
    uint64_t *sorted;   /* [experts] scratch: fraction, batch order, slot */
    uint64_t *tree;     /* [2 * leaves] the lowest-scored resident below each node, as a key; root is 1 */
    uint32_t leaves;    /* power of two */
};

lfu *k3_lfu_new(const struct residents *r)
{
    lfu *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    for (f->leaves = 1; f->leaves < (uint32_t)r->lists; f->leaves *= 2)
        ;
    f->visit = calloc((size_t)r->lists, sizeof *f->visit);
    f->last = calloc(r->nids, sizeof *f->last);
    f->fraction = calloc(r->nids, sizeof *f->fraction);
    f->sorted = calloc((size_t)r->shape.experts, sizeof *f->sorted);
    f->tree = calloc(2 * (size_t)f->leaves, sizeof *f->tree);
    if (f->visit && f->last && f->fraction && f->sorted && f->tree)
        return f;
    k3_lfu_free(f);
    return NULL;
}

void k3_lfu_free(lfu *f)
{
    if (!f)
        return;
    free(f->visit);
    free(f->last);
    free(f->fraction);
    free(f->sorted);
    free(f->tree);
    free(f);
}

void k3_lfu_clear(lfu *f, const struct residents *r)
{
    memset(f->visit, 0, (size_t)r->lists * sizeof *f->visit);
    memset(f->last, 0, r->nids * sizeof *f->last);
    memset(f->fraction, 0, r->nids * sizeof *f->fraction);
    memset(f->tree, 0, 2 * (size_t)f->leaves * sizeof *f->tree);
}

/* Larger is a lower score: present, age, 65535 - fraction, layer. */
static uint64_t key_of(uint32_t age, uint32_t fraction, uint32_t list)
{
    return 1ull << 63 | (uint64_t)age << 32 | (uint64_t)(65535 - fraction) << 16 | list;
}

/* Enters the last of the layer's list into the tournament. */
static void update(lfu *f, const struct residents *r, uint32_t list)
{
    uint32_t head = r->slots + list, last = r->node[head].prev, id = r->node[last].id;
    uint32_t i = f->leaves + list;
    uint64_t key = last == head ? 0 : key_of(f->visit[list] - f->last[id], f->fraction[id], list);
    for (; f->tree[i] != key; i /= 2) {
        f->tree[i] = key;
        if (i == 1)
            return;
        if (f->tree[i ^ 1] > key)
            key = f->tree[i ^ 1];
    }
}

/* The score of an expert used now; `rank` is what its place adds. */
static uint32_t use(lfu *f, uint32_t id, uint32_t visit, uint32_t rank)
{
    uint32_t age = visit - f->last[id], past = 0;
    if (f->last[id] && age <= 16)
        past = (65536u + f->fraction[id]) >> age;
    f->last[id] = visit;
    return f->fraction[id] = (uint16_t)(rank + past * (65536 - RANK_SHARE) / 65536);
}

/* A slot for an expert that misses with this score, or -1. */
static int32_t take_slot(lfu *f, struct residents *r, uint32_t fraction)
{
    if (r->list[0].used < r->slots)
        return (int32_t)r->list[0].used++;
    uint64_t lowest = f->tree[1];
    if (lowest < key_of(0, fraction, 0xffff) || !lowest)
        return -1;
    uint32_t list = (uint32_t)(lowest & 0xffff), slot = r->node[r->slots + list].prev;
    unlink_slot(r->node, slot);
    r->slot_of[r->node[slot].id] = -1;
    update(f, r, list);
    return (int32_t)slot;
}

/* Ascending; Shell's sort, because batches are short and qsort may allocate. */
static void sort(uint64_t *v, int n)
{
    static const int gaps[] = {1, 10, 57, 301, 1750, 10000};
    size_t g = 0;
    while (g + 1 < sizeof gaps / sizeof *gaps && gaps[g + 1] < n / 2)
        g++;
    for (;; g--) {
        for (int i = gaps[g]; i < n; i++) {
            uint64_t x = v[i];
            int j = i;
            for (; j >= gaps[g] && v[j - gaps[g]] > x; j -= gaps[g])
                v[j] = v[j - gaps[g]];
            v[j] = x;
        }
        if (!g)
            return;
    }
}

int k3_lfu_batch(lfu *f, struct residents *r, int layer, const uint16_t *experts, int n, int32_t *slot_of, uint8_t *hit)
{
    uint32_t list = (uint32_t)(layer - r->shape.first), first = list * (uint32_t)r->shape.experts;
    uint32_t visit = ++f->visit[list], step = (RANK_SHARE - 1) * 256u / (uint32_t)n;
    int hits = take_hits(r, first, experts, n, slot_of, hit), held = 0;
    update(f, r, list);
    for (int i = 0; i < n; i++) {
        uint32_t id = first + experts[i], fraction = use(f, id, visit, (uint32_t)(n - i) * step >> 8);
        if (!hit[i] && (slot_of[i] = take_slot(f, r, fraction)) < 0)
            continue;
        r->node[slot_of[i]].id = id;
        r->slot_of[id] = slot_of[i];
        /* from the end: the batch's order is nearly that of the scores */
        f->sorted[n - ++held] =
            (uint64_t)fraction << 48 | (uint64_t)(uint16_t)(n - 1 - i) << 32 | (uint32_t)slot_of[i];
    }
    sort(f->sorted + n - held, held);
    for (int i = n - held; i < n; i++)
        push_first(r->node, r->slots + list, (uint32_t)f->sorted[i]);
    update(f, r, list);
    return hits;
}
