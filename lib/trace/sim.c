/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator's policies by name, and the engine's own behind the same call. */
#include "sim_policies.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[K3_SIM_COUNT] = {
    [K3_SIM_LRU] = "lru",       [K3_SIM_LAYERS] = "layers", [K3_SIM_LFU] = "lfu",
    [K3_SIM_FIFO] = "fifo",     [K3_SIM_CLOCK] = "clock",   [K3_SIM_RANDOM] = "random",
    [K3_SIM_SLRU] = "slru",     [K3_SIM_2Q] = "2q",         [K3_SIM_ARC] = "arc",
    [K3_SIM_S3FIFO] = "s3fifo", [K3_SIM_SIEVE] = "sieve",   [K3_SIM_WTINYLFU] = "wtinylfu",
    [K3_SIM_PIN] = "pin",       [K3_SIM_BELADY] = "belady", [K3_SIM_BELADY_BYPASS] = "belady-bypass",
};

const char *k3_sim_name(int kind)
{
    return kind >= 0 && kind < K3_SIM_COUNT ? names[kind] : "unknown";
}

int k3_sim_kind(const char *name)
{
    for (int i = 0; i < K3_SIM_COUNT; i++)
        if (!strcmp(name, names[i]))
            return i;
    return -1;
}

bool k3_sim_knows_future(int kind)
{
    return kind == K3_SIM_PIN || kind == K3_SIM_BELADY || kind == K3_SIM_BELADY_BYPASS;
}

static bool is_engine(int kind)
{
    return kind == K3_SIM_LRU || kind == K3_SIM_LAYERS || kind == K3_SIM_LFU;
}

static uint32_t share(uint32_t slots, uint32_t part, uint32_t of)
{
    uint32_t n = (uint32_t)((uint64_t)slots * part / of);
    return n ? n : slots > 0;
}

/* Sizes of the segments of those that have some. */
static void set_segments(k3_sim *s)
{
    switch (s->kind) {
    case K3_SIM_SLRU:
        s->cap[0] = (uint32_t)((uint64_t)s->slots * 4 / 5);
        break;
    case K3_SIM_2Q:
        s->cap[0] = share(s->slots, 1, 4);
        s->cap[1] = share(s->slots, 1, 2);
        break;
    case K3_SIM_S3FIFO:
        s->cap[0] = share(s->slots, 1, 10);
        break;
    case K3_SIM_WTINYLFU:
        s->cap[0] = share(s->slots, 1, 100);
        s->cap[1] = (uint32_t)((uint64_t)(s->slots - s->cap[0]) * 4 / 5);
        break;
    case K3_SIM_PIN:
        s->cap[0] = s->slots / 2;
        break;
    default:
        break;
    }
}

static int allocate(k3_sim *s, k3_err *err)
{
    if (s->kind == K3_SIM_BELADY || s->kind == K3_SIM_BELADY_BYPASS)
        return 0;
    if (is_engine(s->kind)) {
        size_t experts = (size_t)s->shape.experts;
        s->experts = malloc(experts * sizeof *s->experts);
        s->slot_of = malloc(experts * sizeof *s->slot_of);
        s->hit = malloc(experts);
        int kind = s->kind == K3_SIM_LRU      ? K3_POLICY_LRU
                   : s->kind == K3_SIM_LAYERS ? K3_POLICY_LAYERS
                                              : K3_POLICY_LFU;
        if (!s->experts || !s->slot_of || !s->hit)
            return K3_ESYS;
        return k3_policy_new(&s->policy, kind, &s->shape, s->slots, err);
    }
    s->where = calloc(s->nids, 1);
    s->link = malloc(((size_t)s->nids + MAX_LISTS) * sizeof *s->link);
    s->mark = calloc(s->nids, sizeof *s->mark);
    if (!s->where || !s->link || !s->mark)
        return K3_ESYS;
    for (uint32_t i = s->nids; i < s->nids + MAX_LISTS; i++)
        s->link[i] = (struct link){.prev = i, .next = i};
    if (s->kind == K3_SIM_RANDOM && !(s->slot = malloc((s->slots + 1) * sizeof *s->slot)))
        return K3_ESYS;
    if (s->kind == K3_SIM_WTINYLFU && !(s->freq = calloc(s->nids, sizeof *s->freq)))
        return K3_ESYS;
    return 0;
}

int k3_sim_new(k3_sim **out, int kind, const k3_shape *shape, uint32_t slots, bool batched, uint64_t seed,
               k3_err *err)
{
    *out = NULL;
    if (kind < 0 || kind >= K3_SIM_COUNT)
        return k3_fail(err, K3_EUSAGE, "cache policy %d is not known (0 to %d)", kind, K3_SIM_COUNT - 1);
    k3_sim *s = calloc(1, sizeof *s);
    if (!s)
        return k3_fail(err, K3_ESYS, "out of memory for a simulation");
    s->kind = kind;
    s->shape = *shape;
    s->batched = batched;
    s->nids = (uint32_t)(shape->layers - shape->first) * (uint32_t)shape->experts;
    s->slots = slots < s->nids ? slots : s->nids;
    s->rng = (seed + 1) * 0x9e3779b97f4a7c15ull | 1;
    set_segments(s);
    k3_err why = {0};
    int status = allocate(s, &why);
    if (status) {
        k3_sim_free(s);
        return why.status
                   ? k3_fail(err, status, "%s", why.text)
                   : k3_fail(err, K3_ESYS, "out of memory to simulate %s with %u slots", k3_sim_name(kind), slots);
    }
    *out = s;
    return 0;
}

void k3_sim_free(k3_sim *s)
{
    if (!s)
        return;
    free(s->where);
    free(s->link);
    free(s->mark);
    free(s->slot);
    free(s->freq);
    k3_policy_free(s->policy);
    free(s->experts);
    free(s->slot_of);
    free(s->hit);
    for (size_t i = 0; i < sizeof s->bits / sizeof *s->bits; i++)
        free(s->bits[i]);
    free(s);
}

uint64_t k3_sim_hits(const k3_sim *s)
{
    return s->hits;
}

static void engine_run(k3_sim *s, const k3_requests *q)
{
    const uint32_t *id = q->id;
    for (uint64_t b = 0; b < q->batches; id += q->batch[b++].n) {
        int n = (int)q->batch[b].n, layer = q->batch[b].layer, hits = 0;
        uint32_t base = (uint32_t)((layer - s->shape.first) * s->shape.experts);
        if (s->batched) {
            for (int i = 0; i < n; i++)
                s->experts[i] = (uint16_t)(id[i] - base);
            hits = k3_policy_batch(s->policy, layer, s->experts, n, s->slot_of, s->hit);
        } else {
            for (int i = 0; i < n; i++) {
                uint16_t e = (uint16_t)(id[i] - base);
                int32_t slot;
                uint8_t hit;
                hits += k3_policy_batch(s->policy, layer, &e, 1, &slot, &hit);
            }
        }
        s->hits += q->batch[b].counted ? (uint64_t)hits : 0;
    }
}

int k3_sim_run(k3_sim *s, const k3_requests *q, k3_err *err)
{
    static void (*const run[K3_SIM_COUNT])(k3_sim *, const k3_requests *) = {
        [K3_SIM_LRU] = engine_run,      [K3_SIM_LAYERS] = engine_run,   [K3_SIM_LFU] = engine_run,
        [K3_SIM_FIFO] = k3_sim_fifo,    [K3_SIM_CLOCK] = k3_sim_clock,  [K3_SIM_RANDOM] = k3_sim_random,
        [K3_SIM_SLRU] = k3_sim_slru,    [K3_SIM_2Q] = k3_sim_twoq,      [K3_SIM_ARC] = k3_sim_arc,
        [K3_SIM_S3FIFO] = k3_sim_s3fifo, [K3_SIM_SIEVE] = k3_sim_sieve, [K3_SIM_WTINYLFU] = k3_sim_wtinylfu,
    };
    switch (s->kind) {
    case K3_SIM_PIN:
        return k3_sim_pin(s, q, err);
    case K3_SIM_BELADY:
    case K3_SIM_BELADY_BYPASS:
        return k3_sim_belady(s, q, s->kind == K3_SIM_BELADY_BYPASS, err);
    default:
        run[s->kind](s, q);
        return 0;
    }
}
