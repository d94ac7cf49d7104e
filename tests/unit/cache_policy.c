/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's cache policies against a plain model of their rules. */
#include "k3_cache.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng = 88172645463325252ull;

static uint32_t below(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)((rng >> 32) * n >> 32);
}

static k3_policy *policy(int kind, k3_shape shape, uint32_t slots)
{
    k3_err err = {0};
    k3_policy *p;
    cr_assert_eq(k3_policy_new(&p, kind, &shape, slots, &err), 0, "%s", err.text);
    return p;
}

/* n distinct experts, the low numbers more often. */
static void draw(uint16_t *e, int n, int experts)
{
    for (int i = 0; i < n; i++) {
    again:
        e[i] = (int32_t)(below(2) ? below((uint32_t)experts) : below((uint32_t)(experts + 3) / 4));
        for (int j = 0; j < i; j++)
            if (e[j] == e[i])
                goto again;
    }
}

enum { LAYERS = 7, FIRST = 2, EXPERTS = 13, TOPK = 3, IDS = LAYERS * EXPERTS };

static const k3_shape shape = {.layers = LAYERS, .first = FIRST, .experts = EXPERTS, .topk = TOPK};

/* What every policy owes its caller, whatever it evicts. */
static void check_contract(int kind, uint32_t slots)
{
    k3_policy *p = policy(kind, shape, slots);
    int held[IDS]; /* expert in slot, by what was handed out */
    for (int i = 0; i < IDS; i++)
        held[i] = -1;
    for (int step = 0; step < 400; step++) {
        int layer = FIRST + step % (LAYERS - FIRST), n = step % 11 ? TOPK : (int)below(EXPERTS) + 1;
        uint16_t e[EXPERTS];
        int32_t slot[EXPERTS];
        uint8_t hit[EXPERTS];
        draw(e, n, EXPERTS);
        int hits = k3_policy_batch(p, layer, e, n, slot, hit), counted = 0;
        for (int i = 0; i < n; i++) {
            int id = layer * EXPERTS + e[i];
            cr_assert(slot[i] >= -1 && slot[i] < (int)slots, "slot %d of %u", slot[i], slots);
            cr_assert(!hit[i] || (slot[i] >= 0 && held[slot[i]] == id), "a hit on a slot that holds another expert");
            counted += hit[i];
            for (int j = 0; j < i; j++)
                cr_assert(slot[i] < 0 || slot[i] != slot[j], "two experts of a batch share slot %d", slot[i]);
        }
        for (int i = 0; i < n; i++)
            if (slot[i] >= 0)
                held[slot[i]] = layer * EXPERTS + e[i];
        cr_assert_eq(hits, counted);
        for (int s = 0; s < (int)slots; s++)
            if (held[s] >= 0)
                cr_assert_eq(k3_policy_slot(p, held[s] / EXPERTS, held[s] % EXPERTS), s, "slot %d was lost", s);
    }
    k3_policy_free(p);
}

Test(cache_policy, slots_never_alias)
{
    static const uint32_t sizes[] = {0, 1, 2, 3, 4, 14, 15, 16, 17, 31, IDS};
    for (int kind = 0; kind < K3_POLICY_COUNT; kind++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            check_contract(kind, sizes[i]);
}

/* LRU by its rules: time of last use per expert, everything found by scanning. */
struct model {
    long used[IDS];    /* larger = more recent, 0 = not resident */
    int count[LAYERS]; /* residents a list */
    long now;
};

static int model_batch(struct model *m, int per_layer, int slots, int layer, const uint16_t *e, int n)
{
    int hits = 0, list = per_layer ? layer : 0;
    bool own[IDS] = {false};
    for (int i = 0; i < n; i++) {
        own[layer * EXPERTS + e[i]] = true;
        hits += m->used[layer * EXPERTS + e[i]] > 0;
    }
    for (int i = 0; i < n; i++) {
        int id = layer * EXPERTS + e[i], victim = -1;
        if (m->used[id])
            continue;
        if (m->count[list] == slots) {
            for (int v = 0; v < IDS; v++)
                if (m->used[v] && !own[v] && (!per_layer || v / EXPERTS == layer) &&
                    (victim < 0 || m->used[v] < m->used[victim]))
                    victim = v;
            if (victim < 0)
                continue;
            m->used[victim] = 0;
            m->count[list]--;
        }
        m->used[id] = 1;
        m->count[list]++;
    }
    for (int i = n - 1; i >= 0; i--)
        if (m->used[layer * EXPERTS + e[i]])
            m->used[layer * EXPERTS + e[i]] = ++m->now;
    return hits;
}

static void check_lru(int kind, int per_layer, int quota, uint32_t slots)
{
    k3_policy *p = policy(kind, shape, slots);
    struct model m = {.now = 1};
    for (int step = 0; step < 600; step++) {
        int layer = FIRST + step % (LAYERS - FIRST), n = step % 13 ? TOPK : (int)below(EXPERTS) + 1;
        uint16_t e[EXPERTS];
        int32_t slot[EXPERTS];
        uint8_t hit[EXPERTS];
        draw(e, n, EXPERTS);
        int want = model_batch(&m, per_layer, quota, layer, e, n);
        cr_assert_eq(k3_policy_batch(p, layer, e, n, slot, hit), want, "%s, %u slots, step %d", k3_policy_name(kind),
                     slots, step);
        for (int i = 0; i < n; i++)
            cr_assert_eq(slot[i] >= 0, m.used[layer * EXPERTS + e[i]] > 0);
    }
    k3_policy_free(p);
}

Test(cache_policy, lru_follows_the_batch_rules)
{
    for (int slots = 0; slots <= 40; slots++)
        check_lru(K3_POLICY_LRU, 0, slots, (uint32_t)slots);
}

Test(cache_policy, layers_are_lrus_of_their_own)
{
    /* every layer the same share: 3..13 slots each of 5 layers */
    for (int quota = TOPK; quota <= EXPERTS; quota++)
        check_lru(K3_POLICY_LAYERS, 1, quota, (uint32_t)(quota * (LAYERS - FIRST)));
}

/* Slots that a layer can hold at most, found by filling it. */
static int fill_layer(k3_policy *p, int layer)
{
    uint16_t e[EXPERTS];
        int32_t slot[EXPERTS];
    uint8_t hit[EXPERTS];
    int held = 0;
    for (int i = 0; i < EXPERTS; i++)
        e[i] = i;
    k3_policy_batch(p, layer, e, EXPERTS, slot, hit);
    for (int i = 0; i < EXPERTS; i++)
        held += slot[i] >= 0;
    return held;
}

Test(cache_policy, dealing_uses_every_slot_and_never_splits_a_share)
{
    for (uint32_t slots = 0; slots <= (LAYERS - FIRST) * EXPERTS + 5; slots++) {
        k3_policy *p = policy(K3_POLICY_LAYERS, shape, slots);
        int sum = 0, partial = 0, most = 0, least = EXPERTS;
        for (int l = FIRST; l < LAYERS; l++) {
            int q = fill_layer(p, l);
            sum += q;
            partial += q > 0 && q < TOPK;
            most = q > most ? q : most;
            least = q < least ? q : least;
        }
        cr_assert_eq(sum, (int)k3_policy_slots(p), "%d of %u slots dealt", sum, slots);
        cr_assert_leq(partial, 1, "%u slots: %d layers with a part of a share", slots, partial);
        if (slots >= (LAYERS - FIRST) * TOPK)
            cr_assert_leq(most - least, 1, "%u slots: shares from %d to %d", slots, least, most);
        k3_policy_free(p);
    }
}

/* What the forward pass asks for and what the simulator replays. */
Test(cache_policy, batch_order_is_newest_position_first)
{
    static const uint16_t rows[3][3] = {{5, 6, 7}, {7, 1, 5}, {2, 1, 9}};
    static const uint16_t want[] = {2, 1, 9, 7, 5, 6};
    uint16_t got[9];
    uint8_t seen[10] = {0}, none[10] = {0};
    for (int round = 0; round < 2; round++) {
        cr_assert_eq(k3_distinct(seen, &rows[0][0], 3, 3, got), 6);
        cr_assert_arr_eq(got, want, sizeof want);
        cr_assert_arr_eq(seen, none, sizeof seen, "the scratch must be zeros again");
    }
}

/* One token's set cycles: LRU well below it hits nothing, at it everything. A policy
 * that ages by global time would repeat LRU's zero; lfu must settle on what fits. */
Test(cache_policy, lfu_survives_the_cycle_that_defeats_lru)
{
    enum { SET = (LAYERS - FIRST) * TOPK };
    for (uint32_t slots = 1; slots <= SET; slots++) {
        k3_policy *lru = policy(K3_POLICY_LRU, shape, slots), *lfu = policy(K3_POLICY_LFU, shape, slots);
        int hits_lru = 0, hits_lfu = 0;
        for (int token = 0; token < 40; token++)
            for (int l = FIRST; l < LAYERS; l++) {
                const uint16_t e[TOPK] = {l, l + 6, 0};
                int32_t slot[TOPK];
                uint8_t hit[TOPK];
                int a = k3_policy_batch(lru, l, e, TOPK, slot, hit), b = k3_policy_batch(lfu, l, e, TOPK, slot, hit);
                hits_lru += a;
                hits_lfu += token >= 20 ? b : 0;
            }
        /* what is left of a layer when it returns: all but one layer's share is newer */
        int left = (int)slots - (SET - TOPK);
        cr_assert_eq(hits_lru, left > 0 ? 39 * (LAYERS - FIRST) * left : 0);
        cr_assert_eq(hits_lfu, 20 * (int)slots, "%u slots: %d hits", slots, hits_lfu);
        k3_policy_free(lru);
        k3_policy_free(lfu);
    }
}

/* lfu by its definition, the lowest score found by scanning. */
struct scores {
    double score[IDS]; /* at the last visit of the layer */
    bool in[IDS];
    int held;
};

static int score_batch(struct scores *m, int slots, int layer, const uint16_t *e, int n)
{
    bool own[IDS] = {false}, was[IDS];
    int hits = 0;
    memcpy(was, m->in, sizeof was);
    for (int i = 0; i < EXPERTS; i++)
        m->score[layer * EXPERTS + i] /= 2;
    for (int i = 0; i < n; i++)
        own[layer * EXPERTS + e[i]] = true;
    for (int i = 0; i < n; i++) {
        int id = layer * EXPERTS + e[i], low = -1;
        m->score[id] = 1 + (1 - (double)i / n) * 0.75 + m->score[id] / 4;
        hits += was[id];
        if (was[id])
            continue;
        for (int v = 0; v < IDS && m->held == slots; v++)
            if (m->in[v] && !own[v] && (low < 0 || m->score[v] < m->score[low]))
                low = v;
        if (m->held == slots && (low < 0 || m->score[low] >= m->score[id]))
            continue;
        if (m->held == slots)
            m->in[low] = false;
        m->held += m->held < slots;
        m->in[id] = true;
    }
    return hits;
}

Test(cache_policy, lfu_follows_its_definition)
{
    /* Batch sizes 3, 5 and 7 in turn keep the scores of different layers apart, so that no tie decides. */
    static const int size[LAYERS] = {0, 0, 3, 5, 7, 11, 13};
    for (int slots = 0; slots <= 40; slots++) {
        k3_policy *p = policy(K3_POLICY_LFU, shape, (uint32_t)slots);
        struct scores m = {.held = 0};
        int differ = 0, total = 0;
        for (int step = 0; step < 1000; step++) {
            int layer = FIRST + step % (LAYERS - FIRST);
            uint16_t e[EXPERTS];
        int32_t slot[EXPERTS];
            uint8_t hit[EXPERTS];
            draw(e, size[layer], EXPERTS);
            int want = score_batch(&m, slots, layer, e, size[layer]);
            int got = k3_policy_batch(p, layer, e, size[layer], slot, hit);
            differ += abs(want - got);
            total += want;
        }
        /* 16 bits of fraction against a double: some ties remain */
        cr_assert_leq(differ, total / 100 + 2, "%d slots: %d of %d hits differ", slots, differ, total);
        k3_policy_free(p);
    }
}

Test(cache_policy, clear_forgets_history)
{
    for (int kind = 0; kind < K3_POLICY_COUNT; kind++) {
        k3_policy *p = policy(kind, shape, 9);
        int hits[2] = {0, 0};
        for (int round = 0; round < 2; round++) {
            rng = 42;
            k3_policy_clear(p);
            for (int step = 0; step < 200; step++) {
                uint16_t e[TOPK];
                int32_t slot[TOPK];
                uint8_t hit[TOPK];
                draw(e, TOPK, EXPERTS);
                hits[round] += k3_policy_batch(p, FIRST + step % 5, e, TOPK, slot, hit);
            }
        }
        cr_assert_eq(hits[0], hits[1], "%s", k3_policy_name(kind));
        k3_policy_free(p);
    }
}

Test(cache_policy, refuses_nonsense)
{
    static const k3_shape bad[] = {{0, 0, 8, 2}, {4, 4, 8, 2}, {4, -1, 8, 2},
                                   {4, 0, 0, 1}, {4, 0, 8, 9}, {4, 0, 8, 0}};
    k3_policy *p;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_assert_eq(k3_policy_new(&p, K3_POLICY_LRU, &bad[i], 4, NULL), K3_EUSAGE);
    cr_assert_eq(k3_policy_new(&p, K3_POLICY_COUNT, &shape, 4, NULL), K3_EUSAGE);
    cr_assert_null(p);
    for (int kind = 0; kind < K3_POLICY_COUNT; kind++)
        cr_assert_eq(k3_policy_kind(k3_policy_name(kind)), kind);
    cr_assert_eq(k3_policy_kind("lfu"), K3_POLICY_LFU);
    cr_assert_eq(k3_policy_kind("LRU"), -1);
}
