/* SPDX-License-Identifier: Apache-2.0 */
/* What would help when even the least plan does not fit. */
#include "advice.h"

#include "thresholds.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

struct advice {
    char text[3][64];
    int n;
};

__attribute__((format(printf, 2, 3))) static void advise(struct advice *a, const char *fmt, ...)
{
    va_list ap;
    if (a->n == 3)
        return;
    va_start(ap, fmt);
    vsnprintf(a->text[a->n++], sizeof a->text[0], fmt, ap);
    va_end(ap);
}

/* The most that *field may be, below what it is, with which o fits; 0 if nothing does. */
static uint64_t most_that_fits(const struct plan_input *in, struct limits *o, uint64_t *field, uint64_t budget)
{
    uint64_t low = 0, high = *field;
    while (low + 1 < high) {
        *field = low + (high - low) / 2;
        *(plan_fits(in, o, budget) ? &low : &high) = *field;
    }
    return low;
}

/* Less of a size that was given, rounded down to two decimals of a unit that suits it. */
static void advise_less(struct advice *a, const char *option, uint64_t bytes)
{
    bool large = bytes >= 1000000000;
    double shown = floor((double)bytes / (large ? 1e7 : 1e4)) / 100;
    advise(a, "%s %.2f%s", option, shown, large ? "" : "M");
}

/* Single changes to the command line with which the least plan fits: what was asked for first,
 * then what slows the run down. */
static void find_advice(const struct plan *p, const struct plan_input *in, struct advice *a)
{
    const struct limits *given = in->limits;
    struct limits o = *given;
    uint64_t n, over = p->total > p->budget ? p->total - p->budget : 0, cache = p->stream.expert_slots * in->expert_room;
    if (given->trunk_bytes != UNSET && p->stream.pin_bytes >= over)
        advise_less(a, "--trunk-gb", p->stream.pin_bytes - over);
    if (given->cache_bytes != UNSET && cache >= over)
        advise_less(a, "--cache-gb", cache - over);
    o.trunk_bytes = o.cache_bytes = UNSET;
    if (p->total <= p->machine.limit && given->memory && given->memory != UINT64_MAX)
        advise(a, "--memory %" PRIu64 "M", (p->total + 999999) / 1000000);
    else if ((given->trunk_bytes != UNSET || given->cache_bytes != UNSET) && plan_fits(in, &o, p->budget / 1000000 * 1000000))
        advise(a, "--memory %" PRIu64 "M", p->budget / 1000000);
    o = *given;
    if (o.context > in->demand.positions && (n = most_that_fits(in, &o, &o.context, p->budget)))
        advise(a, "--context %" PRIu64, n);
    o = *given;
    if ((n = most_that_fits(in, &o, &o.gen, p->budget)))
        advise(a, "--gen %" PRIu64, n);
    o = *given;
    o.chunk = 1;
    if (given->chunk > 1 && plan_fits(in, &o, p->budget))
        advise(a, "--chunk 1");
    o = *given;
    o.lookahead = 0;
    if (given->lookahead > 0 && plan_fits(in, &o, p->budget))
        advise(a, "--lookahead 0");
    o = *given;
    o.spill = 1;
    if (!given->spill && plan_fits(in, &o, p->budget))
        advise(a, "--spill on");
    o = *given;
    o.ring = 2;
    if (given->ring > 2 && plan_fits(in, &o, p->budget))
        advise(a, "--ring 2");
    o = *given;
    for (size_t i = 0; given->tile && i < sizeof tile_sizes / sizeof *tile_sizes; i++)
        if ((o.tile = tile_sizes[i]) < given->tile && plan_fits(in, &o, p->budget)) {
            advise(a, "--tile %" PRIu64 "Ki", tile_sizes[i] / 1024);
            break;
        }
    o = *given;
    struct plan_input shards = *in;
    shards.trunk_tile = 0;
    if (in->trunk_tile && plan_fits(&shards, &o, p->budget))
        advise(a, "--trunk none");
    o = *given;
    o.io_depth = 1;
    if (given->io_depth != 1 && plan_fits(in, &o, p->budget))
        advise(a, "--io-depth 1");
    o = *given;
    o.threads = 1;
    if (given->threads > 1 && plan_fits(in, &o, p->budget))
        advise(a, "--threads 1");
}

int advice_refuse(const struct plan *p, const struct plan_input *in, k3_err *err)
{
    char need[24], have[24];
    struct advice a = {.n = 0};
    find_advice(p, in, &a);
    if (!a.n)
        advise(&a, "more memory");
    return k3_fail(err, K3_ESYS, "not enough memory: %s are needed, %s may be used; what would help: %s%s%s%s%s",
                   k3_fmt_bytes(need, p->total), k3_fmt_bytes(have, p->budget), a.text[0], a.n > 1 ? ", or " : "",
                   a.n > 1 ? a.text[1] : "", a.n > 2 ? ", or " : "", a.n > 2 ? a.text[2] : "");
}
