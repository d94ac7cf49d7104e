/* How much is in flight, measured while the model runs.
 *
 * A device wants many reads queued. Where a read is a copy by a processor, many in flight only take turns on the cores,
 * and their buffers fall out of the caches between one use and the next: a few are faster, down to one tile being read
 * while another is multiplied. The copy may be made here (page cache, holes), which the readers' own processor time
 * shows at once, or by a host that serves a virtual disk from its memory, which only the pace of whole layers shows.
 * So from time to time some layers are read in each way, and the way that took least is kept. */
#include "streamer.h"

#include <string.h>

enum {
    TRIAL_EVERY = 16, /* passes */
    KINDS = 4,        /* layers of a large model repeat after so many: three KDA and one MLA */
    LARGE = 6 * KINDS /* layers */
};

static void add_way(struct tuner *t, uint32_t reads)
{
    struct way w = {reads, reads + 1, true};
    const struct way *last = &t->way[t->ways - 1];
    if (w.reads < last->reads && w.tiles < last->tiles)
        t->way[t->ways++] = w;
}

void tune_init(struct streamer *s)
{
    struct tuner *t = &s->tuner;
    bool streams = false;
    for (uint32_t i = 0; i < s->order->ntiles; i++)
        streams = streams || !s->pin[i].buf;
    uint32_t copies = s->plan.copies < s->plan.depth ? s->plan.copies : s->plan.depth;
    t->way[0] = (struct way){s->plan.depth, s->capacity, false};
    t->copying = (struct way){copies, copies + 1, true};
    t->ways = 1;
    if (!copies || !streams)
        return;
    add_way(t, copies);
    add_way(t, 1);
}

/* On trial, every way has each kind of layer once: in a large model that takes a few layers after the first ones, in a
 * small one, where all count as different, as many passes as there are ways. Not the first pass, which loads what stays.
 * The way to try for a tile, or -1. */
static int trial_way(const struct streamer *s, uint64_t pass, uint32_t tile)
{
    uint64_t layers = s->plan.layers, kinds = layers < LARGE ? layers + 1 : KINDS, start = layers < LARGE ? 0 : KINDS;
    if (s->tuner.ways == 1 || s->tuner.copied || pass < 2 || tile == s->order->ntiles)
        return -1;
    int layer = s->order->tiles[tile].layer;
    uint64_t n = (pass - 2) % TRIAL_EVERY * (layers + 1) + (layer < 0 ? layers : (uint64_t)layer) - start; /* or huge */
    return n < s->tuner.ways * kinds ? (int)((n % kinds + n / kinds) % s->tuner.ways) : -1;
}

const struct way *tune_way(const struct streamer *s, uint64_t pass, uint32_t tile)
{
    const struct tuner *t = &s->tuner;
    int trial = trial_way(s, pass, tile);
    return t->copied ? &t->copying : &t->way[trial >= 0 ? (uint32_t)trial : t->best];
}

/* How the products of the layer at hand should read their weights. Called by the thread that calls the products. */
static void tell_reading(struct streamer *s)
{
    s->base.reading = k3_reading_usual();
    if (tune_way(s, s->pass, s->tile)->keep)
        s->base.reading = k3_reading_kept(s->base.reading);
}

/* The layer of the tile at hand begins. */
static void enter(struct streamer *s)
{
    struct tuner *t = &s->tuner;
    bool trial = trial_way(s, s->pass, s->tile) >= 0;
    if (t->trying && !trial) {
        t->best = 0;
        for (uint32_t i = 1; i < t->ways; i++)
            if (t->layers[i] && t->seconds[i] / t->layers[i] < t->seconds[t->best] / t->layers[t->best])
                t->best = i;
        memset(t->seconds, 0, sizeof t->seconds);
        memset(t->layers, 0, sizeof t->layers);
    }
    t->trying = trial;
    tell_reading(s);
}

void tune_pass(struct streamer *s)
{
    s->tuner.since = k3_now();
    enter(s);
}

void tune_layer(struct streamer *s, uint32_t tile)
{
    struct tuner *t = &s->tuner;
    double now = k3_now();
    int trial = trial_way(s, s->pass, tile);
    if (trial >= 0) {
        t->seconds[trial] += now - t->since;
        t->layers[trial]++;
    }
    t->since = now;
    if (s->tile < s->order->ntiles)
        enter(s);
}

void tune_read(struct streamer *s, double wall, double cpu)
{
    enum { WINDOW = 32 };
    struct tuner *t = &s->tuner;
    t->timed_wall += wall;
    t->timed_cpu += cpu;
    if (!s->plan.copies || ++t->timed < WINDOW)
        return;
    /* A device of 4 GB/s takes a fiftieth of the time; a copy all that it does not wait for a core. */
    t->copied = t->timed_cpu > t->timed_wall / (t->copied ? 8 : 4);
    t->timed_wall = t->timed_cpu = 0;
    t->timed = 0;
}
