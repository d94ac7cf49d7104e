/* SPDX-License-Identifier: Apache-2.0 */
/* The planner. */
#include "plan.h"
#include "k3_cache.h"
#include "k3_direct.h"
#include "ring.h"
#include "thresholds.h"
#include "k3_model.h"

#include <math.h>

const struct preset plan_presets[] = {
    {"ultra", 0, 0, "the floor: state in a scratch file, nothing kept"},
    {"laptop", 3, 1, "8 GB machines"},
    {"desktop", 16, 10, "32 GB"},
    {"workstation", 60, 30, "96 GB"},
    {"server", 110, 13, "192 GB: all of the trunk stays"},
    {"max", 110, 109, "256 GB"},
    {"auto", UNSET, UNSET, "what this machine has free, less a tenth"},
    {0},
};

static uint64_t min64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void item(struct plan *p, const char *name, uint64_t bytes)
{
    p->item[p->nitems++] = (struct plan_item){name, bytes};
    p->total += bytes;
}

static void size_tensor(struct order_size *s, const k3_tensor *t, uint64_t tile, bool packed)
{
    uint64_t row = t->cols * k3_dtype_size[t->dtype], step = k3_tile_rows(t, tile), n = (t->rows + step - 1) / step;
    s->tiles += n;
    s->pieces += n;
    s->largest = max64(s->largest, min64(step, t->rows) * row);
    s->room += packed ? t->bytes + n * K3_DIRECT_ALIGN : t->bytes + n * 3 * (uint64_t)K3_DIRECT_ALIGN;
}

struct order_size plan_order_size(const k3_config *c, uint64_t layers, uint64_t tile, bool packed)
{
    struct order_size s = {0};
    for (int l = -1; l < (int)layers; l++)
        for (int id = 0; id < K3_TENSORS; id++) {
            k3_tensor t;
            if (!k3_schema_tensor(c, l, (k3_tensor_id)id, &t) || t.use == K3_USE_ROWS)
                continue;
            *(l < 0 ? &s.head : &s.trunk) += t.bytes;
            if (l >= (int)c->first_moe && id >= K3_T_Q && id <= K3_T_O)
                s.attention += t.bytes;
            size_tensor(&s, &t, tile, packed);
        }
    return s;
}

static bool has_experts(const struct plan_input *in, const struct plan *p)
{
    return in->c->moe_layers && p->stream.layers > in->c->first_moe;
}

/* All routed experts of the layers that run. */
static uint64_t pool_of(const struct plan_input *in, const struct plan *p)
{
    return has_experts(in, p) ? (p->stream.layers - in->c->first_moe) * in->c->experts : 0;
}

/* Everything that a plan needs, itemised from its choices. */
static void itemise(struct plan *p, const struct plan_input *in, const struct order_size *s)
{
    const k3_config *c = in->c;
    const struct stream_sizes *st = &p->stream;
    uint64_t slots = has_experts(in, p) ? st->expert_slots : 0, together = p->sequences * (1 + p->draft);
    p->rows = in->limits->every_row ? p->tokens : together;
    p->nitems = 0;
    p->total = 0;
    item(p, "program and libraries", program_bytes);
    item(p, "index", in->index_bytes);
    item(p, "reading order", s->tiles * (sizeof(k3_tile) + sizeof(struct pinned_tile)) + s->pieces * sizeof(k3_piece));
    item(p, "threads", (uint64_t)(in->limits->threads + (int)stream_threads(st) + 1) * stack_bytes + stream_threads(st) * in->bounce);
    item(p, p->spill ? "state (KDA layers in scratch)" : "state",
         p->sequences * k3_state_bytes(c, st->layers, p->positions, p->spill));
    item(p, "drafts", p->draft ? p->sequences * k3_state_draft_bytes(c, st->layers, 1 + p->draft) : 0);
    item(p, "activations", k3_model_bytes(c, in->limits->threads, p->tokens, p->positions));
    item(p, "logits", (p->rows + 2) * c->vocab * sizeof(float)); /* two rows for sampling */
    item(p, "tile ring", st->ring * k3_direct_room(s->largest));
    item(p, "experts in transit", has_experts(in, p) ? st->transit * in->expert_room : 0);
    item(p, "experts read ahead", has_experts(in, p) ? st->lookahead * in->expert_room : 0);
    item(p, "pinned tiles", st->pin_bytes);
    item(p, "expert cache", slots * in->expert_room);
}

/* Hit rate of the layers policy for slots / one token's experts, on the recorded
 * trace of the released model's decode steps (12 positions: a rough guide). */
static double expected_hits(const k3_config *c, uint64_t slots)
{
    static const double at[][2] = {{0, 0}, {0.2935, 0.08}, {0.5027, 0.135}, {0.9518, 0.267}, {1.4076, 0.393},
                                   {1.9035, 0.456}, {2.3988, 0.481}};
    double working = (double)(c->moe_layers * c->topk), x = (double)slots / working, all = (double)c->experts / (double)c->topk;
    size_t n = sizeof at / sizeof *at;
    if (x >= all)
        return 1;
    for (size_t i = 1; i < n; i++)
        if (x < at[i][0])
            return at[i - 1][1] + (at[i][1] - at[i - 1][1]) * (x - at[i - 1][0]) / (at[i][0] - at[i - 1][0]);
    if (all <= at[n - 1][0])
        return at[n - 1][1];
    return at[n - 1][1] + (1 - at[n - 1][1]) * (x - at[n - 1][0]) / (all - at[n - 1][0]);
}

/* Seconds of a step's expert reads, `expert_s` in all, that a lookahead lays into the time in which attention is
 * multiplied and the device has no trunk to read, `idle`. */
static double read_ahead(const struct plan *p, const k3_config *c, double expert_s, double idle)
{
    return fmin(expert_s * guesses_right * fmin(1, (double)p->stream.lookahead / (double)c->topk), idle);
}

/* Bytes and seconds of one decode step at the rates r, those of m. */
static void predict(struct plan *p, const struct plan_input *in, const struct machine *m, const struct rates *r, const struct order_size *s)
{
    const k3_config *c = in->c;
    uint64_t moe = has_experts(in, p) ? p->stream.layers - c->first_moe : 0;
    double pinned = s->room ? fmin(1, (double)p->stream.pin_bytes / (double)s->room) : 0;
    p->trunk = (uint64_t)((double)s->trunk * (1 - pinned) + 0.5);
    p->head = (uint64_t)((double)s->head * (1 - pinned) + 0.5);
    p->experts_most = moe * c->topk * k3_expert_bytes(c);
    p->hit = moe ? expected_hits(c, p->stream.expert_slots) : 0;
    p->experts = (uint64_t)((double)p->experts_most * (1 - p->hit) + 0.5);
    p->embedding = c->hidden * 2;
    p->scratch = p->spill ? 2 * (k3_state_bytes(c, p->stream.layers, 0, false)) : 0;
    double trunk_s = (double)(p->trunk + p->head + p->scratch) / r->trunk, expert_s = (double)p->experts / r->experts;
    double rate = compute_rate * in->limits->threads, trunk_c = (double)(s->trunk + s->head) / rate, expert_c = (double)p->experts_most / rate;
    p->read_seconds = m->two_devices ? fmax(trunk_s, expert_s) : trunk_s + expert_s;
    p->compute_seconds = trunk_c + expert_c;
    /* Experts are known, and so can be read, only when the trunk has been multiplied up to their router; some are guessed. */
    double idle = fmax(0, trunk_c - trunk_s) * (double)s->attention / (double)(s->trunk + s->head);
    if (p->stream.lookahead)
        expert_s -= read_ahead(p, c, expert_s, idle);
    p->seconds = m->two_devices ? fmax(p->read_seconds, p->compute_seconds) : fmax(trunk_s, trunk_c) + fmax(expert_s, expert_c);
}

/* The least that runs with this tile size; a starting point to grow from. */
static void least(struct plan *p, const struct plan_input *in, uint64_t tile, bool spill)
{
    const struct limits *o = in->limits;
    p->stream.tile_bytes = tile;
    p->stream.ring = o->ring ? (uint32_t)o->ring : LEAST_RING;
    p->stream.depth = o->io_depth ? (uint32_t)o->io_depth : LEAST_IO_DEPTH;
    p->stream.copies = o->io_depth ? 0 : (uint32_t)max64((uint64_t)o->threads, LEAST_IO_DEPTH);
    p->stream.checkers = in->trunk_tile ? CHECKERS : 0; /* a packed trunk has checksums */
    p->stream.transit = 1;
    p->stream.lookahead = o->lookahead == UNSET || !has_experts(in, p) ? 0 : (uint32_t)min64((uint64_t)o->lookahead, in->c->topk);
    p->stream.pin_bytes = p->stream.expert_slots = 0;
    p->sequences = 1;
    p->draft = 0;
    p->tokens = o->chunk ? o->chunk : 1;
    p->spill = spill;
}

static uint64_t total_of(struct plan *p, const struct plan_input *in, const struct order_size *s)
{
    itemise(p, in, s);
    return p->total;
}

/* Sequences together, and room for their drafts: a pass over the weights serves them all. */
static void grow_together(struct plan *p, const struct plan_input *in, const struct order_size *s)
{
    const struct limits *o = in->limits;
    uint64_t start = total_of(p, in, s), allowed = start + (p->budget > start ? (p->budget - start) / together_part : 0);
    uint64_t most = min64(o->batch ? o->batch : MOST_TOGETHER, in->demand.sequences), chunk = p->tokens;
    bool single = o->single || p->spill;
    for (uint64_t draft = o->draft;; draft /= 2) {
        p->draft = draft;
        p->tokens = max64(chunk, 1 + draft);
        if (!draft || total_of(p, in, s) <= allowed)
            break;
    }
    while (!single && p->sequences < most) {
        p->sequences++;
        p->tokens = max64(chunk, p->sequences * (1 + p->draft));
        if (total_of(p, in, s) > allowed) {
            p->sequences--;
            break;
        }
    }
    p->tokens = max64(chunk, p->sequences * (1 + p->draft));
}

/* Doubles the tokens of a pass, up to the prompt, while that takes no more than a
 * third of what is spare: every pass saved is a whole trunk not read again. */
static void grow_tokens(struct plan *p, const struct plan_input *in, const struct order_size *s)
{
    uint64_t most = min64(max64(in->demand.prompt, 1), MOST_TOKENS), start = total_of(p, in, s);
    uint64_t allowed = start + (p->budget > start ? (p->budget - start) / tokens_part : 0);
    while (p->tokens < most) {
        uint64_t before = p->tokens;
        p->tokens = min64(before * 2, most);
        if (total_of(p, in, s) > allowed) {
            p->tokens = before;
            break;
        }
    }
}

/* Tiles in flight, as many more that have come, and two in hand. */
static uint32_t full_ring(uint32_t depth)
{
    return TILES_A_READ * depth + TILES_IN_HAND;
}

/* Reads in flight, and tiles for them: at most that many more. */
static void grow_ring(struct plan *p, const struct plan_input *in, const struct order_size *s, uint64_t most)
{
    struct stream_sizes *st = &p->stream;
    uint32_t least = st->depth;
    if (!in->limits->io_depth)
        st->depth = DEFAULT_IO_DEPTH;
    if (!in->limits->ring)
        st->ring = (uint32_t)max64(st->ring, min64(full_ring(st->depth), st->ring + most));
    /* More reads than half the ring would all land together and leave no place to read to. */
    while (st->depth > least && (full_ring(st->depth) > st->ring || total_of(p, in, s) > p->budget))
        st->depth--;
}

/* Gives bytes to what makes a pass run well: prompt tokens together, then reads in flight. */
static void grow(struct plan *p, const struct plan_input *in, const struct order_size *s)
{
    grow_together(p, in, s);
    if (!in->limits->chunk)
        grow_tokens(p, in, s);
    uint64_t used = total_of(p, in, s), spare = p->budget > used ? p->budget - used : 0;
    if (has_experts(in, p)) {
        uint64_t more = min64(MORE_TRANSIT, spare / transit_part / in->expert_room);
        p->stream.transit += (uint32_t)more;
        spare -= more * in->expert_room;
    }
    grow_ring(p, in, s, spare / ring_part / k3_direct_room(s->largest));
    itemise(p, in, s);
}

/* Splits `spare` between pinned tiles and cached experts where it saves most predicted seconds;
 * of the two, one that was given stays as it is. */
static void split(struct plan *p, const struct plan_input *in, const struct machine *m, const struct order_size *s, uint64_t spare)
{
    bool pins = in->limits->trunk_bytes == UNSET, cache = in->limits->cache_bytes == UNSET && in->expert_room;
    uint64_t best_pin = p->stream.pin_bytes, best_slots = p->stream.expert_slots;
    double best = INFINITY;
    for (int i = 0; i <= (pins && cache ? SPLIT_STEPS : 0); i++) {
        /* From all in tiles down to none; ties keep the tiles. */
        uint64_t share = pins ? spare / SPLIT_STEPS * (uint64_t)(SPLIT_STEPS - i) + (i ? 0 : spare % SPLIT_STEPS) : 0;
        uint64_t pin = pins ? min64(share, s->room) : best_pin, left = spare - (pins ? pin : 0);
        p->stream.pin_bytes = pin;
        p->stream.expert_slots = (uint32_t)(cache ? min64(left / in->expert_room, pool_of(in, p)) : best_slots);
        predict(p, in, m, &m->assumed, s);
        if (p->seconds < best - 1e-9) {
            best = p->seconds;
            best_pin = pin;
            best_slots = p->stream.expert_slots;
        }
    }
    p->stream.pin_bytes = best_pin;
    p->stream.expert_slots = (uint32_t)best_slots;
    predict(p, in, m, &m->assumed, s);
}

/* Splits what is spare of `room`, after buffers for as large a lookahead as pays within `most` in all. */
static void split_with_lookahead(struct plan *p, const struct plan_input *in, const struct machine *m,
                                 const struct order_size *s, uint64_t room, uint64_t most)
{
    const struct plan before = *p;
    bool choose = in->limits->lookahead == UNSET && has_experts(in, p) && p->sequences == 1;
    split(p, in, m, s, room > p->total ? room - p->total : 0);
    for (uint64_t n = 1; choose && n <= in->c->topk; n++) {
        struct plan q = before;
        q.stream.lookahead = (uint32_t)n;
        if (total_of(&q, in, s) > most)
            break;
        split(&q, in, m, s, room > q.total ? room - q.total : 0);
        if (q.seconds < p->seconds * least_gain || (p->stream.lookahead && q.seconds <= p->seconds))
            *p = q;
    }
}

/* --trunk-gb, --cache-gb and presets: sizes given outright. */
static void given_sizes(struct plan *p, const struct plan_input *in, const struct order_size *s)
{
    const struct limits *o = in->limits;
    if (o->trunk_bytes != UNSET)
        p->stream.pin_bytes = min64((uint64_t)o->trunk_bytes, s->room);
    if (o->cache_bytes != UNSET && in->expert_room)
        p->stream.expert_slots = (uint32_t)min64((uint64_t)o->cache_bytes / in->expert_room, pool_of(in, p));
}

/* The least plan with that tile size and the sizes that were given; returns its total. */
static uint64_t start(struct plan *p, const struct plan_input *in, struct order_size *s, uint64_t tile, bool spill)
{
    least(p, in, tile, spill);
    *s = plan_order_size(in->c, p->stream.layers, tile, in->trunk_tile != 0);
    given_sizes(p, in, s);
    return total_of(p, in, s);
}

/* The first of a list of beginnings that fits. If none does, false and the smallest:
 * the tables of very small tiles can take more than large tiles. */
static bool find_start(struct plan *p, const struct plan_input *in, struct order_size *s)
{
    const struct limits *o = in->limits;
    uint64_t only = in->trunk_tile ? in->trunk_tile : o->tile, best = UINT64_MAX, best_tile = 0;
    size_t n = only ? 1 : sizeof tile_sizes / sizeof *tile_sizes;
    bool best_spill = false;
    for (size_t i = 0; i < n; i++)
        for (int spill = o->spill == 1; spill <= (o->spill != 0); spill++) {
            uint64_t tile = only ? only : tile_sizes[i], total = start(p, in, s, tile, spill);
            /* State goes to scratch rather than leave no room for reads in flight. */
            uint64_t margin = spill || o->spill == 0 ? 0 : READS_OF_MARGIN * (s->largest + in->expert_room);
            if (total + margin <= p->budget)
                return true;
            if (total < best) {
                best = total;
                best_tile = tile;
                best_spill = spill;
            }
        }
    return start(p, in, s, best_tile, best_spill) <= p->budget;
}

bool plan_fits(const struct plan_input *in, const struct limits *l, uint64_t budget)
{
    struct order_size s;
    struct plan_input changed = *in;
    struct plan p = {.positions = max64(in->demand.positions - in->limits->gen + l->gen, l->context), .budget = budget, .stream.layers = l->layers};
    changed.limits = l;
    return find_start(&p, &changed, &s);
}

bool plan_make(struct plan *p, const struct plan_input *in, const struct machine *m)
{
    const struct limits *o = in->limits;
    bool given = o->trunk_bytes != UNSET || o->cache_bytes != UNSET;
    struct order_size s;
    *p = (struct plan){.machine = *m, .threads = o->threads, .positions = max64(in->demand.positions, o->context)};
    p->stream = (struct stream_sizes){.layers = o->layers, .policy = o->policy, .direct = o->direct, .huge = o->huge,
                                     .slow_us = o->slow_us};
    uint64_t most = m->limit - m->limit / spare_part, free_choice = o->memory ? o->memory : default_bytes;
    /* What was asked for may take all that is free; what we choose leaves a tenth. */
    if (o->memory && o->memory != UINT64_MAX)
        p->budget = min64(o->memory, m->limit);
    else
        p->budget = given ? m->limit : min64(free_choice, most);
    if (!find_start(p, in, &s)) {
        predict(p, in, m, &m->seen, &s);
        return false;
    }
    grow(p, in, &s);
    split_with_lookahead(p, in, m, &s, min64(p->budget, free_choice), min64(p->budget, given ? most : free_choice));
    itemise(p, in, &s);
    predict(p, in, m, &m->seen, &s);
    return true;
}
