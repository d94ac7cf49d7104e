/* Cache policies: what they share, LRU, and LRU dealt to layers. */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[K3_POLICY_COUNT] = {"lru", "layers", "lfu"};

const char *k3_policy_name(int kind)
{
    return kind >= 0 && kind < K3_POLICY_COUNT ? names[kind] : "unknown";
}

int k3_policy_kind(const char *name)
{
    for (int i = 0; i < K3_POLICY_COUNT; i++)
        if (!strcmp(name, names[i]))
            return i;
    return -1;
}

/* Deals the slots: topk each to as many evenly spaced layers as that serves, or
 * an even share to all once every layer has topk. A share above topk is worth
 * less than a first share elsewhere, because the last position's experts
 * return most. */
static void deal(k3_policy *p)
{
    uint64_t n = (uint64_t)p->lists, k = (uint64_t)p->shape.topk, base = 0;
    uint64_t shares = (p->slots + k - 1) / k;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t quota;
        if (p->slots >= n * k) {
            quota = p->slots / n + ((i + 1) * (p->slots % n) / n - i * (p->slots % n) / n);
        } else {
            uint64_t before = i * shares / n, after = (i + 1) * shares / n;
            quota = after == before ? 0 : after == shares ? p->slots - (shares - 1) * k : k;
        }
        if (quota > (uint64_t)p->shape.experts)
            quota = (uint64_t)p->shape.experts;
        p->list[i] = (struct list){.base = (uint32_t)base, .quota = (uint32_t)quota};
        base += quota;
    }
}

static int check_shape(int kind, const k3_shape *s, k3_err *err)
{
    if (kind < 0 || kind >= K3_POLICY_COUNT)
        return k3_fail(err, K3_EUSAGE, "cache policy %d is not known", kind);
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
        return k3_fail(err, K3_EUSAGE, "%llu experts are too many", (unsigned long long)ids);
    k3_policy *p = calloc(1, sizeof *p);
    if (!p)
        goto no_memory;
    p->kind = kind;
    p->shape = *shape;
    p->nids = (uint32_t)ids;
    p->slots = slots < p->nids ? slots : p->nids;
    p->lists = kind == K3_POLICY_LRU ? 1 : shape->layers - shape->first;
    p->node = malloc(((size_t)p->slots + (size_t)p->lists) * sizeof *p->node);
    p->list = calloc((size_t)p->lists, sizeof *p->list);
    p->slot_of = malloc(p->nids * sizeof *p->slot_of);
    p->mark = calloc((size_t)shape->experts, sizeof *p->mark);
    if (!p->node || !p->list || !p->slot_of || !p->mark || (kind == K3_POLICY_LFU && k3_lfu_new(p, err)))
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
    k3_lfu_free(p);
    free(p->node);
    free(p->list);
    free(p->slot_of);
    free(p->mark);
    free(p);
}

void k3_policy_clear(k3_policy *p)
{
    for (uint32_t i = 0; i < p->nids; i++)
        p->slot_of[i] = -1;
    for (uint32_t i = p->slots; i < p->slots + (uint32_t)p->lists; i++)
        p->node[i] = (struct node){.prev = i, .next = i};
    if (p->kind == K3_POLICY_LAYERS)
        deal(p);
    else
        p->list[0] = (struct list){.quota = p->slots};
    if (p->lfu)
        k3_lfu_clear(p);
}

uint32_t k3_policy_slots(const k3_policy *p)
{
    return p->slots;
}

int32_t k3_policy_slot(const k3_policy *p, int layer, int expert)
{
    return p->slot_of[(layer - p->shape.first) * p->shape.experts + expert];
}

int k3_distinct_experts(uint32_t *mark, uint32_t *epoch, int mark_size, const int32_t *experts, int rows, int k,
                     int32_t *distinct)
{
    int n = 0;
    if (++*epoch == 0) {
        memset(mark, 0, (size_t)mark_size * sizeof *mark);
        *epoch = 1;
    }
    for (int r = rows - 1; r >= 0; r--) {
        const int32_t *row = experts + (size_t)r * (size_t)k;
        for (int i = 0; i < k; i++) {
            if (mark[row[i]] == *epoch)
                continue;
            mark[row[i]] = *epoch;
            distinct[n++] = row[i];
        }
    }
    return n;
}

int k3_policy_distinct(k3_policy *p, const int32_t *experts, int rows, int k, int32_t *distinct)
{
    return k3_distinct_experts(p->mark, &p->epoch, p->shape.experts, experts, rows, k, distinct);
}

/* A slot of list l for an expert that misses, or -1. What the batch holds or was
 * given is linked into no list while it is served, so it cannot be chosen. */
static int32_t take_slot(k3_policy *p, struct list *l, uint32_t head)
{
    if (l->used < l->quota)
        return (int32_t)(l->base + l->used++);
    uint32_t last = p->node[head].prev;
    if (last == head)
        return -1;
    unlink_slot(p->node, last);
    p->slot_of[p->node[last].id] = -1;
    return (int32_t)last;
}

static int lru_batch(k3_policy *p, int list, int layer, const int32_t *experts, int n, int32_t *slot_of, uint8_t *hit)
{
    uint32_t first = (uint32_t)((layer - p->shape.first) * p->shape.experts), head = p->slots + (uint32_t)list;
    int hits = 0;
    for (int i = 0; i < n; i++) {
        slot_of[i] = p->slot_of[first + (uint32_t)experts[i]];
        hit[i] = slot_of[i] >= 0;
        hits += hit[i];
        if (hit[i])
            unlink_slot(p->node, (uint32_t)slot_of[i]);
    }
    for (int i = 0; i < n && hits < n; i++) {
        if (hit[i] || (slot_of[i] = take_slot(p, &p->list[list], head)) < 0)
            continue;
        uint32_t id = first + (uint32_t)experts[i];
        p->node[slot_of[i]].id = id;
        p->slot_of[id] = slot_of[i];
    }
    for (int i = n - 1; i >= 0; i--)
        if (slot_of[i] >= 0)
            push_first(p->node, head, (uint32_t)slot_of[i]);
    return hits;
}

int k3_policy_batch(k3_policy *p, int layer, const int32_t *experts, int n, int32_t *slot_of, uint8_t *hit)
{
    if (p->kind == K3_POLICY_LFU)
        return k3_lfu_batch(p, layer, experts, n, slot_of, hit);
    return lru_batch(p, p->kind == K3_POLICY_LAYERS ? layer - p->shape.first : 0, layer, experts, n, slot_of, hit);
}
