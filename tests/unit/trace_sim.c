/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator by the laws of caching, and against plain models. */
#include "k3_sim.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t rng;

static uint32_t below(uint32_t n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((rng >> 32) * n >> 32);
}

static void setup(void)
{
    rng = 3;
}

TestSuite(trace_sim, .init = setup);

static void start(k3_requests *q, k3_shape shape, bool batched)
{
    cr_assert_eq(k3_requests_new(q, &shape, batched, NULL), 0);
}

static void add(k3_requests *q, int layer, const uint16_t *e, int rows, int k)
{
    const k3_trace_batch b = {.rows = rows, .k = k, .layer = layer, .experts = e};
    cr_assert_eq(k3_requests_add(q, &b, true, NULL), 0);
}

static uint64_t hits_of(int kind, const k3_requests *q, uint32_t slots)
{
    k3_err err = {0};
    k3_sim *s;
    cr_assert_eq(k3_sim_new(&s, kind, &q->shape, slots, q->batched, 1, &err), 0, "%s", err.text);
    cr_assert_eq(k3_sim_run(s, q, &err), 0, "%s", err.text);
    uint64_t hits = k3_sim_hits(s);
    k3_sim_free(s);
    return hits;
}

static uint32_t distinct_of(const k3_requests *q)
{
    uint32_t nids = (uint32_t)((q->shape.layers - q->shape.first) * q->shape.experts), n = 0;
    uint8_t *seen = calloc(nids, 1);
    for (uint64_t i = 0; i < q->n; i++) {
        n += !seen[q->id[i]];
        seen[q->id[i]] = 1;
    }
    free(seen);
    return n;
}

/* Layers in turn, a few positions at a time, popular experts and repeats. */
static void random_trace(k3_requests *q, k3_shape shape, int steps, bool batched)
{
    uint16_t e[16 * 64], last[64] = {0};
    start(q, shape, batched);
    for (int s = 0; s < steps; s++) {
        int rows = below(10) ? 1 : 1 + (int)below(12);
        for (int l = shape.first; l < shape.layers; l++) {
            for (int i = 0; i < rows * shape.topk; i++) {
            again:
                e[i] = below(3)   ? (uint16_t)below((uint32_t)shape.experts)
                       : below(2) ? last[below(64)]
                                  : (uint16_t)below((uint32_t)(shape.experts + 7) / 8);
                for (int j = i / shape.topk * shape.topk; j < i; j++)
                    if (e[j] == e[i])
                        goto again;
                last[below(64)] = e[i];
            }
            add(q, l, e, rows, shape.topk);
        }
    }
}

static const k3_shape small = {.layers = 4, .first = 1, .experts = 24, .topk = 3};
enum { POOL = 72 };

Test(trace_sim, one_pass_equals_the_engine_at_every_size)
{
    /* long enough that the stamps of the one pass run out; batches from 1 to all experts */
    for (int batched = 0; batched < 2; batched++) {
        k3_requests q;
        k3_curve *c;
        random_trace(&q, small, 9000, batched);
        cr_assert_gt(q.n, 70000);
        cr_assert_eq(k3_curve_new(&c, &small, batched, NULL), 0);
        cr_assert_eq(k3_curve_run(c, &q, NULL), 0);
        for (uint32_t slots = 0; slots <= POOL + 1; slots++)
            cr_assert_eq(k3_curve_hits(c, slots), hits_of(K3_SIM_LRU, &q, slots), "%s, %u slots",
                         batched ? "batched" : "unbatched", slots);
        cr_assert_eq(k3_curve_distance(c, 0), distinct_of(&q));
        k3_curve_free(c);
        k3_requests_free(&q);
    }
}

Test(trace_sim, one_pass_with_one_layer_and_huge_batches)
{
    /* one layer: batches follow each other on the same experts, so the sizes below a batch matter */
    const k3_shape one = {.layers = 1, .first = 0, .experts = 40, .topk = 5};
    for (int round = 0; round < 20; round++) {
        k3_requests q;
        k3_curve *c;
        random_trace(&q, one, 300, true);
        cr_assert_eq(k3_curve_new(&c, &one, true, NULL), 0);
        cr_assert_eq(k3_curve_run(c, &q, NULL), 0);
        for (uint32_t slots = 0; slots <= 40; slots++)
            cr_assert_eq(k3_curve_hits(c, slots), hits_of(K3_SIM_LRU, &q, slots), "round %d, %u slots", round, slots);
        k3_curve_free(c);
        k3_requests_free(&q);
    }
}

Test(trace_sim, inclusion)
{
    for (int batched = 0; batched < 2; batched++) {
        k3_requests q;
        random_trace(&q, small, 200, batched);
        uint64_t before = 0;
        for (uint32_t slots = 0; slots <= POOL; slots++) {
            uint64_t hits = hits_of(K3_SIM_LRU, &q, slots);
            cr_assert_geq(hits, before, "a larger LRU hits less at %u slots", slots);
            before = hits;
        }
        k3_requests_free(&q);
    }
}

Test(trace_sim, nobody_beats_belady)
{
    for (int round = 0; round < 6; round++) {
        k3_requests q;
        random_trace(&q, small, 120, round & 1);
        for (uint32_t slots = 0; slots <= POOL; slots++) {
            uint64_t best = hits_of(K3_SIM_BELADY_BYPASS, &q, slots);
            for (int kind = 0; kind < K3_SIM_COUNT; kind++)
                cr_assert_leq(hits_of(kind, &q, slots), best, "%s beats the bound at %u slots (%s)",
                              k3_sim_name(kind), slots, q.batched ? "batched" : "unbatched");
            /* those that admit every miss are bounded by the one that does so too */
            static const int admitting[] = {K3_SIM_LRU, K3_SIM_FIFO, K3_SIM_CLOCK,  K3_SIM_RANDOM, K3_SIM_SLRU,
                                            K3_SIM_2Q,  K3_SIM_ARC,  K3_SIM_S3FIFO, K3_SIM_SIEVE};
            uint64_t bound = hits_of(K3_SIM_BELADY, &q, slots);
            for (size_t i = 0; i < sizeof admitting / sizeof *admitting; i++)
                cr_assert_leq(hits_of(admitting[i], &q, slots), bound, "%s beats Belady at %u slots",
                              k3_sim_name(admitting[i]), slots);
        }
        k3_requests_free(&q);
    }
}

/* The most hits that any sequence of decisions reaches, by trying all contents:
 * after a batch a cache may hold any `slots` of what it held and what it read. */
static int best_by_search(const k3_requests *q, uint32_t slots, bool always)
{
    static int reach[1 << 8], next[1 << 8];
    memset(reach, 0xff, sizeof reach);
    reach[0] = 0;
    uint64_t t = 0;
    for (uint64_t b = 0; b < q->batches; t += q->batch[b++].n) {
        unsigned own = 0;
        for (uint32_t i = 0; i < q->batch[b].n; i++)
            own |= 1u << q->id[t + i];
        memset(next, 0xff, sizeof next);
        for (unsigned held = 0; held < 1 << 8; held++) {
            if (reach[held] < 0)
                continue;
            int hits = reach[held] + __builtin_popcount(held & own);
            unsigned all = held | own;
            for (unsigned keep = all;; keep = (keep - 1) & all) {
                bool fits = (unsigned)__builtin_popcount(keep) <= slots;
                if (fits && (!always || (keep & own) == own) && hits > next[keep])
                    next[keep] = hits;
                if (!keep)
                    break;
            }
        }
        memcpy(reach, next, sizeof reach);
    }
    int best = 0;
    for (unsigned held = 0; held < 1 << 8; held++)
        best = reach[held] > best ? reach[held] : best;
    return best;
}

Test(trace_sim, belady_is_the_optimum)
{
    const k3_shape tiny = {.layers = 1, .first = 0, .experts = 8, .topk = 2};
    for (int round = 0; round < 40; round++) {
        k3_requests q;
        uint16_t e[8];
        start(&q, tiny, true);
        for (int s = 0; s < 14; s++) {
            int n = 1 + (int)below(3);
            for (int i = 0; i < n; i++) {
            again:
                e[i] = (uint16_t)below(8);
                for (int j = 0; j < i; j++)
                    if (e[j] == e[i])
                        goto again;
            }
            add(&q, 0, e, 1, n);
        }
        for (uint32_t slots = 0; slots <= 8; slots++) {
            cr_assert_eq((int)hits_of(K3_SIM_BELADY_BYPASS, &q, slots), best_by_search(&q, slots, false), "%u slots",
                         slots);
            if (slots >= 3)
                cr_assert_eq((int)hits_of(K3_SIM_BELADY, &q, slots), best_by_search(&q, slots, true), "%u slots",
                             slots);
        }
        k3_requests_free(&q);
    }
}

Test(trace_sim, a_cache_of_all_that_is_used_misses_each_once)
{
    for (int batched = 0; batched < 2; batched++) {
        k3_requests q;
        random_trace(&q, small, 100, batched);
        uint32_t distinct = distinct_of(&q);
        for (int kind = 0; kind < K3_SIM_COUNT; kind++) {
            uint32_t slots = kind == K3_SIM_LAYERS ? POOL : distinct; /* a share must hold its own layer */
            cr_assert_eq(q.n - hits_of(kind, &q, slots), distinct, "%s", k3_sim_name(kind));
            cr_assert_eq(q.n - hits_of(kind, &q, 1u << 31), distinct, "%s", k3_sim_name(kind));
        }
        k3_requests_free(&q);
    }
}

Test(trace_sim, no_slot_one_slot_one_request_none)
{
    for (int batched = 0; batched < 2; batched++) {
        k3_requests none, one, q;
        const uint16_t e[] = {5};
        start(&none, small, batched);
        start(&one, small, batched);
        add(&one, 2, e, 1, 1);
        random_trace(&q, small, 50, batched);
        for (int kind = 0; kind < K3_SIM_COUNT; kind++)
            for (uint32_t slots = 0; slots < 6; slots++) {
                cr_assert_eq(hits_of(kind, &none, slots), 0);
                cr_assert_eq(hits_of(kind, &one, slots), 0);
                uint64_t hits = hits_of(kind, &q, slots);
                cr_assert(slots || !hits, "%s hits without a slot", k3_sim_name(kind));
                cr_assert_lt(hits, q.n / 2);
            }
        k3_requests_free(&none);
        k3_requests_free(&one);
        k3_requests_free(&q);
    }
}

Test(trace_sim, uniform_requests_hit_by_the_share_held)
{
    /* c of N held: a request hits with probability c/N whatever was evicted */
    const k3_shape flat = {.layers = 1, .first = 0, .experts = 500, .topk = 1};
    enum { REQUESTS = 200000, WARM = 20000 };
    k3_requests q;
    start(&q, flat, false);
    for (int i = 0; i < REQUESTS; i++) {
        const uint16_t e[] = {(uint16_t)below(500)};
        const k3_trace_batch b = {.rows = 1, .k = 1, .experts = e};
        cr_assert_eq(k3_requests_add(&q, &b, i >= WARM, NULL), 0);
    }
    static const int kinds[] = {K3_SIM_LRU, K3_SIM_RANDOM, K3_SIM_FIFO, K3_SIM_CLOCK};
    for (uint32_t slots = 50; slots < 500; slots += 90)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            double p = slots / 500.0, n = REQUESTS - WARM, sigma = sqrt(p * (1 - p) / n);
            double rate = (double)hits_of(kinds[i], &q, slots) / n;
            cr_assert_lt(fabs(rate - p), 3 * sigma, "%s: %.5f instead of %.5f", k3_sim_name(kinds[i]), rate, p);
        }
    k3_requests_free(&q);
}

Test(trace_sim, a_cycle_defeats_lru_by_one_slot)
{
    /* 5 layers of 3: a token's set of 15 comes round 40 times */
    const k3_shape cycle = {.layers = 5, .first = 0, .experts = 8, .topk = 3};
    k3_requests q;
    start(&q, cycle, false);
    for (int t = 0; t < 40; t++)
        for (int l = 0; l < 5; l++) {
            const uint16_t e[] = {l, l + 1, l + 2};
            add(&q, l, e, 1, 3);
        }
    cr_assert_eq(hits_of(K3_SIM_LRU, &q, 14), 0);
    cr_assert_eq(hits_of(K3_SIM_LRU, &q, 15), 39 * 15);
    cr_assert_eq(hits_of(K3_SIM_FIFO, &q, 14), 0);
    cr_assert_eq(hits_of(K3_SIM_BELADY_BYPASS, &q, 14), 39 * 14);
    k3_requests_free(&q);
}

Test(trace_sim, warm_up_is_not_counted)
{
    k3_requests q;
    const uint16_t e[] = {1, 2, 3};
    start(&q, small, true);
    for (int i = 0; i < 10; i++) {
        const k3_trace_batch b = {.rows = 1, .k = 3, .layer = 1, .experts = e};
        cr_assert_eq(k3_requests_add(&q, &b, i >= 6, NULL), 0);
    }
    for (int kind = 0; kind < K3_SIM_COUNT; kind++)
        cr_assert_eq(hits_of(kind, &q, kind == K3_SIM_LAYERS ? POOL : 6), 12, "%s", k3_sim_name(kind));
    k3_requests_free(&q);
}

Test(trace_sim, pieces_give_the_same_as_the_whole)
{
    for (int batched = 0; batched < 2; batched++) {
        k3_requests whole, part;
        random_trace(&whole, small, 300, batched);
        for (int kind = 0; kind < K3_SIM_COUNT; kind++) {
            if (k3_sim_knows_future(kind))
                continue;
            k3_sim *s;
            cr_assert_eq(k3_sim_new(&s, kind, &small, 20, batched, 1, NULL), 0);
            uint64_t id = 0;
            for (uint64_t b = 0; b < whole.batches; b += 7) {
                part = whole;
                part.id = whole.id + id;
                part.batch = whole.batch + b;
                part.batches = whole.batches - b < 7 ? whole.batches - b : 7;
                part.n = 0;
                for (uint64_t i = 0; i < part.batches; i++)
                    part.n += part.batch[i].n;
                id += part.n;
                cr_assert_eq(k3_sim_run(s, &part, NULL), 0);
            }
            cr_assert_eq(k3_sim_hits(s), hits_of(kind, &whole, 20), "%s", k3_sim_name(kind));
            k3_sim_free(s);
        }
        k3_requests_free(&whole);
    }
}

Test(trace_sim, names_go_both_ways)
{
    for (int kind = 0; kind < K3_SIM_COUNT; kind++)
        cr_assert_eq(k3_sim_kind(k3_sim_name(kind)), kind);
    cr_assert_eq(k3_sim_kind("mru"), -1);
    for (int kind = 0; kind < K3_POLICY_COUNT; kind++)
        cr_assert_neq(k3_sim_kind(k3_policy_name(kind)), -1, "the engine's names are the simulator's");
}
