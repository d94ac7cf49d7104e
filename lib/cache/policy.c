/* SPDX-License-Identifier: Apache-2.0 */
/* Cache policies: what they share, LRU, and LRU dealt to layers. */
#include "lfu.h"

#include <stdlib.h>
#include <string.h>

struct k3_policy {
    int kind;
    struct residents r;
    lfu *lfu; /* NULL for the others */
};

static const char *const names[K3_POLICY_COUNT] = {"lru", "layers", "lfu"};

const char *k3_policy_name(int kind)
{
    return kind >= 0 && kind < K3_POLICY_COUNT ? names[kind] : "unknown";
}

int k3_policy_kind(const char *name)
{
    return k3_opt_find(K3_POLICY_WORDS, name);
}

/* Deals the slots: topk each to as many evenly spaced layers as that serves, or
 * an even share to all once every layer has topk. A share above topk is worth
 * less than a first share elsewhere, because the last position's experts
 * return most. */
static void deal(struct residents *r)
{
    uint64_t n = (uint64_t)r->lists, k = (uint64_t)r->shape.topk, base = 0;
    uint64_t shares = (r->slots + k - 1) / k;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t quota;
        if (r->slots >= n * k) {
            quota = r->slots / n + ((i + 1) * (r->slots % n) / n - i * (r->slots % n) / n);
        } else {
            uint64_t before = i * shares / n, after = (i + 1) * shares / n;
            quota = after == before ? 0 : after == shares ? r->slots - (shares - 1) * k : k;
        }
        if (quota > (uint64_t)r->shape.experts)
            quota = (uint64_t)r->shape.experts;
        r->list[i] = (struct list){.base = (uint32_t)base, .quota = (uint32_t)quota};
        base += quota;
    }
}

static int check_shape(int kind, const k3_shape *s, k3_err *err)
{
    if (kind < 0 || kind >= K3_POLICY_COUNT)
        return k3_fail(err, K3_EUSAGE, "cache policy %d is not known (0 lru, 1 layers, 2 lfu)", kind);
    if (s->layers < 1 || s->layers > 65535 || s->first < 0 || s->first >= s->layers || s->experts < 1 ||
        s->experts > 65535 || s->topk < 1 || s->topk > s->experts)
        return k3_fail(err, K3_EUSAGE, "no cache for %d layers from %d with %d of %d experts each", s->layers,
                       s->first, s->topk, s->experts);
    return 0;
}

int k3_policy_new(k3_policy **out, int kind, const k3_shape *shape, uint32_t slots, k3_err *err)
{
    *out = NULL;
    int status = check_shape(kind, shape, err);
    if (status)
        return status;
    uint64_t ids = (uint64_t)(shape->layers - shape->first) * (uint64_t)shape->experts;
    if (ids > INT32_MAX)
        return k3_fail(err, K3_EUSAGE, "%llu experts are too many (at most %d)", (unsigned long long)ids, INT32_MAX);
    k3_policy *p = calloc(1, sizeof *p);
    if (!p)
        goto no_memory;
    struct residents *r = &p->r;
    p->kind = kind;
    r->shape = *shape;
    r->nids = (uint32_t)ids;
    r->slots = slots < r->nids ? slots : r->nids;
    r->lists = kind == K3_POLICY_LRU ? 1 : shape->layers - shape->first;
    r->node = malloc(((size_t)r->slots + (size_t)r->lists) * sizeof *r->node);
    r->list = calloc((size_t)r->lists, sizeof *r->list);
    r->slot_of = malloc(r->nids * sizeof *r->slot_of);
    if (!r->node || !r->list || !r->slot_of || (kind == K3_POLICY_LFU && !(p->lfu = k3_lfu_new(r))))
        goto no_memory;
    k3_policy_clear(p);
    *out = p;
    return 0;
no_memory:
    k3_policy_free(p);
    return k3_fail(err, K3_ESYS, "out of memory for a cache policy over %u slots", slots);
}

void k3_policy_free(k3_policy *p)
{
    if (!p)
        return;
    k3_lfu_free(p->lfu);
    free(p->r.node);
    free(p->r.list);
    free(p->r.slot_of);
    free(p);
}

void k3_policy_clear(k3_policy *p)
{
    struct residents *r = &p->r;
    for (uint32_t i = 0; i < r->nids; i++)
        r->slot_of[i] = -1;
    for (uint32_t i = r->slots; i < r->slots + (uint32_t)r->lists; i++)
        r->node[i] = (struct slot_node){.prev = i, .next = i};
    if (p->kind == K3_POLICY_LAYERS)
        deal(r);
    else
        r->list[0] = (struct list){.quota = r->slots};
    if (p->lfu)
        k3_lfu_clear(p->lfu, r);
}

uint32_t k3_policy_slots(const k3_policy *p)
{
    return p->r.slots;
}

int32_t k3_policy_slot(const k3_policy *p, int layer, int expert)
{
    return p->r.slot_of[(layer - p->r.shape.first) * p->r.shape.experts + expert];
}

/* A slot of list l for an expert that misses, or -1. What the batch holds or was
 * given is linked into no list while it is served, so it cannot be chosen. */
static int32_t take_slot(struct residents *r, struct list *l, uint32_t head)
{
    if (l->used < l->quota)
        return (int32_t)(l->base + l->used++);
    uint32_t last = r->node[head].prev;
    if (last == head)
        return -1;
    unlink_slot(r->node, last);
    r->slot_of[r->node[last].id] = -1;
    return (int32_t)last;
}

static int lru_batch(struct residents *r, int list, int layer, const uint16_t *experts, int n, int32_t *slot_of,
                     uint8_t *hit)
{
    uint32_t first = (uint32_t)((layer - r->shape.first) * r->shape.experts), head = r->slots + (uint32_t)list;
    int hits = take_hits(r, first, experts, n, slot_of, hit);
    for (int i = 0; i < n && hits < n; i++) {
        if (hit[i] || (slot_of[i] = take_slot(r, &r->list[list], head)) < 0)
            continue;
        uint32_t id = first + experts[i];
        r->node[slot_of[i]].id = id;
        r->slot_of[id] = slot_of[i];
    }
    for (int i = n - 1; i >= 0; i--)
        if (slot_of[i] >= 0)
            push_first(r->node, head, (uint32_t)slot_of[i]);
    return hits;
}

int k3_policy_batch(k3_policy *p, int layer, const uint16_t *experts, int n, int32_t *slot_of, uint8_t *hit)
{
    if (p->kind == K3_POLICY_LFU)
        return k3_lfu_batch(p->lfu, &p->r, layer, experts, n, slot_of, hit);
    int list = p->kind == K3_POLICY_LAYERS ? layer - p->r.shape.first : 0;
    return lru_batch(&p->r, list, layer, experts, n, slot_of, hit);
}
