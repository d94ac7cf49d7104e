/* SPDX-License-Identifier: Apache-2.0 */
/* The planner as a table: model, machine and limits give sizes. Nothing is opened; the model is the released one. */
#include "../../cmd/k3-decode/stream/advice.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define GB UINT64_C(1000000000)
#define MB UINT64_C(1000000)

static k3_config *released(void)
{
    k3_config *c = calloc(1, sizeof *c);
    *c = (k3_config){.hidden = 7168, .layers = 93, .vocab = 163840, .dense_inter = 33792, .first_moe = 1, .heads = 96,
                     .q_lora_rank = 1536, .kv_lora_rank = 512, .qk_nope = 128, .qk_rope = 64, .v_dim = 128, .experts = 896, .topk = 16,
                     .shared = 2, .expert_inter = 3072, .latent = 3584, .block = 12, .max_positions = 1048576, .kda_heads = 96,
                     .kda_head_dim = 128, .conv_kernel = 4, .kda_width = 96 * 128, .shared_width = 2 * 3072, .kda_layers = 69,
                     .mla_layers = 24, .moe_layers = 92};
    for (int l = 3; l < 93; l += 4)
        c->is_mla[l] = 1;
    c->is_mla[92] = 1;
    return c;
}

static struct limits open_limits(const k3_config *c)
{
    return (struct limits){.layers = c->layers, .threads = 8, .trunk_bytes = UNSET, .cache_bytes = UNSET, .lookahead = UNSET,
                           .spill = UNSET, .gen = 8, .policy = 1};
}

static struct plan_input input(const k3_config *c, const struct limits *l)
{
    return (struct plan_input){.limits = l, .c = c, .demand = {1, 32, 32 + l->gen}, .expert_room = 17555456, .bounce = 204800,
                               .index_bytes = 2 * MB};
}

static struct machine of_size(uint64_t bytes)
{
    struct rates r = {5e9, 5e9};
    return (struct machine){.limit = bytes, .assumed = r, .seen = r};
}

/* What holds of every plan. */
static void check(const struct plan *p, const char *what)
{
    uint64_t sum = 0;
    for (int i = 0; i < p->nitems; i++)
        sum += p->item[i].bytes;
    cr_expect_eq(sum, p->total, "%s: the items give %" PRIu64 ", not %" PRIu64, what, sum, p->total);
    cr_expect(p->total <= p->budget, "%s: %" PRIu64 " of %" PRIu64, what, p->total, p->budget);
    cr_expect(p->budget <= p->machine.limit, "%s", what);
    cr_expect(p->stream.ring >= 2 && p->stream.depth >= 1 && p->stream.transit >= 1 && p->sequences >= 1, "%s", what);
    cr_expect(p->tokens >= p->sequences * (1 + p->draft), "%s", what);
}

static struct plan plan(const k3_config *c, const struct limits *l, uint64_t machine, const char *what)
{
    struct plan_input in = input(c, l);
    struct machine m = of_size(machine);
    struct plan p;
    cr_assert(plan_make(&p, &in, &m), "%s does not fit: %" PRIu64 " of %" PRIu64, what, p.total, p.budget);
    check(&p, what);
    return p;
}

/* ---- memory and machine -> sizes ---- */

Test(stream_plan, sizes_for_memory)
{
    static const struct {
        uint64_t memory, machine;
        uint32_t ring, depth, slots, transit, lookahead;
        uint64_t tile, tokens, pin_mb;
        bool spill;
    } row[] = {
        {200 * MB, 64000 * MB, 10, 4, 0, 3, 0, 4096, 32, 41, true},
        {256 * MB, 64000 * MB, 15, 6, 0, 4, 0, 4096, 32, 57, true},
        {512 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 300, true},
        {1000 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 337, false},
        {2000 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 1337, false},
        {4000 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 3337, false},
        {8000 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 7337, false},
        {16000 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 15337, false},
        {32000 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 31337, false},
        {60000 * MB, 64000 * MB, 18, 8, 0, 4, 0, 4096, 32, 59337, false},
        {120000 * MB, 256000 * MB, 18, 8, 443, 4, 2, 4096, 32, 111513, false},
        {250000 * MB, 256000 * MB, 18, 8, 7846, 4, 4, 4096, 32, 111513, false},
    };
    k3_config *c = released();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        struct limits l = open_limits(c);
        char what[64];
        l.memory = row[i].memory;
        snprintf(what, sizeof what, "%" PRIu64 " MB of %" PRIu64, row[i].memory / MB, row[i].machine / MB);
        struct plan p = plan(c, &l, row[i].machine, what);
        const struct stream_sizes *s = &p.stream;
        cr_expect(s->ring == row[i].ring && s->depth == row[i].depth && s->transit == row[i].transit, "%s: ring %u depth %u transit %u",
                  what, s->ring, s->depth, s->transit);
        cr_expect(s->expert_slots == row[i].slots && s->lookahead == row[i].lookahead, "%s: %u slots, lookahead %u", what, s->expert_slots,
                  s->lookahead);
        cr_expect(s->tile_bytes == row[i].tile << 10 && p.tokens == row[i].tokens && p.spill == row[i].spill,
                  "%s: tile %" PRIu64 " tokens %" PRIu64 " spill %d", what, s->tile_bytes >> 10, p.tokens, p.spill);
        cr_expect_eq(s->pin_bytes / MB, row[i].pin_mb, "%s: pins %" PRIu64, what, s->pin_bytes / MB);
    }
    free(c);
}

Test(stream_plan, more_memory_never_takes_longer)
{
    k3_config *c = released();
    double before = 1e9;
    for (uint64_t memory = 1 * GB; memory <= 256 * GB; memory *= 2) {
        struct limits l = open_limits(c);
        l.memory = memory;
        struct plan p = plan(c, &l, 512 * GB, "doubling");
        cr_expect(p.seconds <= before, "%" PRIu64 " GB: %.3f s after %.3f", memory / GB, p.seconds, before);
        before = p.seconds;
    }
    free(c);
}

Test(stream_plan, a_tenth_of_what_is_free_is_left)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    cr_expect_eq(plan(c, &l, 4 * GB, "nothing given").budget, 3600 * MB);
    cr_expect_eq(plan(c, &l, 64 * GB, "nothing given").budget, 8 * GB, "or 8 GB");
    l.memory = 4 * GB;
    cr_expect_eq(plan(c, &l, 4 * GB, "all of it").budget, 4 * GB, "unless it was asked for");
    l.memory = UINT64_MAX;
    l.trunk_bytes = (int64_t)GB;
    cr_expect_eq(plan(c, &l, 4 * GB, "a preset").budget, 4 * GB);
    free(c);
}

Test(stream_plan, given_sizes_stay)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    l.trunk_bytes = (int64_t)(3 * GB);
    l.cache_bytes = (int64_t)GB;
    l.ring = 5;
    l.io_depth = 3;
    l.chunk = 7;
    l.tile = 1 << 20;
    l.lookahead = 3;
    struct plan p = plan(c, &l, 64 * GB, "given");
    cr_expect_eq(p.stream.pin_bytes, 3 * GB);
    cr_expect_eq(p.stream.expert_slots, GB / 17555456);
    cr_expect(p.stream.ring == 5 && p.stream.depth == 3 && p.tokens == 7 && p.stream.tile_bytes == 1 << 20 && p.stream.lookahead == 3);
    cr_expect_eq(p.stream.copies, 0, "a depth that was given is kept");
    free(c);
}

Test(stream_plan, sizes_end_where_the_model_does)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    l.trunk_bytes = l.cache_bytes = (int64_t)(4000 * GB);
    l.memory = UINT64_MAX;
    struct plan p = plan(c, &l, 8000 * GB, "everything");
    cr_expect_eq(p.stream.expert_slots, 92 * 896);
    cr_expect_eq(p.stream.pin_bytes, plan_order_size(c, 93, p.stream.tile_bytes, false).room);
    cr_expect_eq(p.trunk + p.head, 0, "nothing of the trunk is read");
    cr_expect_eq(p.experts, 0);
    free(c);
}

Test(stream_plan, one_dense_layer_has_no_experts)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    l.layers = 1;
    l.memory = 2 * GB;
    struct plan p = plan(c, &l, 64 * GB, "one layer");
    cr_expect(p.stream.expert_slots == 0 && p.stream.lookahead == 0 && p.experts_most == 0);
    free(c);
}

Test(stream_plan, a_packed_trunk_has_its_tiles_and_checkers)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    struct plan_input in = input(c, &l);
    struct machine m = of_size(64 * GB);
    struct plan p;
    in.trunk_tile = 16 << 20;
    cr_assert(plan_make(&p, &in, &m));
    check(&p, "packed");
    cr_expect(p.stream.tile_bytes == 16 << 20 && p.stream.checkers == 2);
    free(c);
}

Test(stream_plan, reads_in_flight_need_half_the_ring)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    for (uint64_t ring = 2; ring <= 24; ring++) {
        l.ring = ring;
        struct plan p = plan(c, &l, 64 * GB, "a ring");
        uint32_t want = ring < 6 ? 2 : ring / 2 - 1 < 8 ? (uint32_t)ring / 2 - 1 : 8;
        cr_expect_eq(p.stream.depth, want, "ring %d: depth %u, not %u", (int)ring, p.stream.depth, want);
    }
    free(c);
}

Test(stream_plan, sequences_share_a_pass)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    struct plan_input in = input(c, &l);
    struct machine m = of_size(64 * GB);
    struct plan p;
    l.memory = 32 * GB;
    in.demand = (struct demand){8, 256, 40};
    cr_assert(plan_make(&p, &in, &m));
    check(&p, "eight lines");
    cr_expect_eq(p.sequences, 8);
    l.batch = 3;
    cr_assert(plan_make(&p, &in, &m));
    cr_expect_eq(p.sequences, 3, "no more than asked for");
    l.single = true;
    cr_assert(plan_make(&p, &in, &m));
    cr_expect_eq(p.sequences, 1);
    free(c);
}

Test(stream_plan, drafts_need_tokens_and_every_row_needs_logits)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    l.memory = 32 * GB;
    l.draft = 4;
    struct plan p = plan(c, &l, 64 * GB, "drafts");
    cr_expect(p.draft == 4 && p.tokens >= 5 && p.rows == 5);
    l.every_row = true;
    p = plan(c, &l, 64 * GB, "every row");
    cr_expect_eq(p.rows, p.tokens);
    free(c);
}

Test(stream_plan, drafts_are_shorter_where_memory_is)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    uint64_t before = 0;
    l.draft = 64;
    for (uint64_t memory = 800 * MB; memory <= 6400 * MB; memory *= 2) {
        l.memory = memory;
        struct plan p = plan(c, &l, 64 * GB, "a long draft");
        cr_expect(p.draft >= before && p.draft <= 64);
        cr_expect(memory > 800 * MB || p.draft < 64, "%" PRIu64 " drafted with 800 MB", p.draft);
        before = p.draft;
    }
    cr_expect_eq(before, 64);
    free(c);
}

Test(stream_plan, lookahead_pays_where_the_trunk_is_resident)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    l.memory = UINT64_MAX;
    l.trunk_bytes = (int64_t)(120 * GB);
    l.cache_bytes = 0;
    struct plan with = plan(c, &l, 256 * GB, "resident trunk");
    l.lookahead = 0;
    struct plan without = plan(c, &l, 256 * GB, "without");
    cr_expect(with.stream.lookahead > 0);
    cr_expect(with.seconds < without.seconds, "%.4f s, %.4f without", with.seconds, without.seconds);
    free(c);
}

Test(stream_plan, the_faster_device_gets_less_memory)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    struct plan_input in = input(c, &l);
    struct machine m = of_size(64 * GB);
    struct plan slow_trunk, slow_experts;
    l.memory = 48 * GB;
    m.two_devices = true;
    m.assumed = m.seen = (struct rates){1e9, 10e9};
    cr_assert(plan_make(&slow_trunk, &in, &m));
    m.assumed = m.seen = (struct rates){10e9, 1e9};
    cr_assert(plan_make(&slow_experts, &in, &m));
    cr_expect(slow_trunk.stream.pin_bytes > slow_experts.stream.pin_bytes);
    cr_expect(slow_trunk.stream.expert_slots < slow_experts.stream.expert_slots);
    free(c);
}

/* The order as it will be built: exact, but that small vectors share tiles. */
Test(stream_plan, sizes_of_the_order_are_those_of_the_order)
{
    k3_config *c = released();
    k3_err err = {0};
    for (uint64_t tile = 64 << 10; tile <= 16 << 20; tile *= 4) {
        struct order_size s = plan_order_size(c, 6, tile, false);
        k3_order *o;
        cr_assert_eq(k3_order_new(&o, c, 0, 6, true, tile, &err), 0, "%s", err.text);
        cr_expect(s.trunk == o->trunk_bytes && s.head == o->head_bytes && s.pieces == o->npieces && s.tiles >= o->ntiles);
        cr_expect(s.largest >= o->largest, "tiles of %" PRIu64 ": %" PRIu64 ", not %" PRIu32, tile, s.largest, o->largest);
        k3_order_free(o);
    }
    free(c);
}

/* ---- what does not fit ---- */

static void refused(const k3_config *c, const struct limits *l, uint64_t machine, const char *const words[])
{
    struct plan_input in = input(c, l);
    struct machine m = of_size(machine);
    struct plan p;
    k3_err err = {0};
    cr_assert(!plan_make(&p, &in, &m));
    cr_expect(p.total > p.budget);
    cr_expect_eq(advice_refuse(&p, &in, &err), K3_ESYS);
    for (; *words; words++)
        cr_expect(strstr(err.text, *words) != NULL, "no \"%s\" in: %s", *words, err.text);
}

Test(stream_plan, advice_for_a_budget_that_is_too_small)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    l.memory = 50 * MB;
    refused(c, &l, 64 * GB, (const char *const[]){"50.00 MB may be used", "--memory", NULL});
    free(c);
}

Test(stream_plan, advice_for_what_was_asked_too_much)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    l.trunk_bytes = (int64_t)(110 * GB);
    l.memory = UINT64_MAX;
    refused(c, &l, 64 * GB, (const char *const[]){"--trunk-gb", NULL});
    l = open_limits(c);
    l.cache_bytes = (int64_t)(110 * GB);
    l.memory = UINT64_MAX;
    refused(c, &l, 64 * GB, (const char *const[]){"--cache-gb", NULL});
    l = open_limits(c);
    l.context = 1000000;
    l.memory = 20 * GB;
    refused(c, &l, 64 * GB, (const char *const[]){"--memory", "--context", NULL});
    l = open_limits(c);
    l.ring = 2000;
    l.tile = 4 << 20;
    l.memory = 4 * GB;
    refused(c, &l, 8 * GB, (const char *const[]){"--ring 2", NULL});
    free(c);
}

Test(stream_plan, what_is_advised_fits)
{
    k3_config *c = released();
    struct limits l = open_limits(c);
    struct plan_input in = input(c, &l);
    struct machine m = of_size(64 * GB);
    struct plan p;
    k3_err err = {0};
    l.context = 1000000;
    l.memory = 20 * GB;
    cr_assert(!plan_make(&p, &in, &m));
    advice_refuse(&p, &in, &err);
    const char *at = strstr(err.text, "--context ");
    cr_assert_neq(at, NULL);
    l.context = strtoull(at + 10, NULL, 10);
    cr_expect(plan_fits(&in, &l, p.budget), "%" PRIu64 " positions", l.context);
    l.context++;
    cr_expect(!plan_fits(&in, &l, p.budget), "one more would fit too");
    free(c);
}
