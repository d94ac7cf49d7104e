/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a way to read. */
#include "tune.h"

#include <string.h>

static void add_config(struct tune *t, uint32_t reads)
{
    const struct read_config c = {reads, reads + 1, true}, *last = &t->config[t->configs - 1];
    if (c.reads < last->reads && c.tiles < last->tiles)
        t->config[t->configs++] = c;
}

/* In a large model every configuration has each kind of layer once, in the layers after the first ones of one pass. In a
 * small one, where all layers count as different, every configuration has each layer once, in as many passes; which one
 * starts moves on with the pass. */
static void list_trials(struct tune *t)
{
    const bool large = t->p.layers >= LARGE_MODEL;
    const int kinds = large ? LAYER_KINDS : t->p.layers + 1, first = large ? LAYER_KINDS : 0, configs = (int)t->configs;
    for (int round = 0; round < configs; round++)
        for (int kind = 0; kind < kinds; kind++) {
            struct trial *e = &t->trial[t->trials++];
            e->pass = large ? 0 : round;
            e->layer = large ? first + round * kinds + kind : kind;
            e->config = (uint32_t)((kind + round) % configs);
        }
}

void tune_init(struct tune *t, const struct tune_params *p)
{
    uint32_t copies = p->copies < p->depth ? p->copies : p->depth;
    *t = (struct tune){.p = *p, .configs = 1};
    t->config[0] = (struct read_config){p->depth, p->tiles, false};
    t->for_copies = (struct read_config){copies, copies + 1, true};
    if (!copies || !p->streams)
        return;
    add_config(t, copies);
    add_config(t, 1);
    if (t->configs > 1)
        list_trials(t);
}

static const struct trial *find_trial(const struct tune *t, uint64_t pass, int layer)
{
    if (t->copies || layer < 0 || pass <= WARM_UP_PASSES)
        return NULL;
    const int of_cycle = (int)((pass - WARM_UP_PASSES - 1) % TRIAL_EVERY);
    for (int i = 0; i < t->trials; i++)
        if (t->trial[i].pass == of_cycle && t->trial[i].layer == layer)
            return &t->trial[i];
    return NULL;
}

const struct read_config *tune_config(const struct tune *t, uint64_t pass, int layer)
{
    const struct trial *e = find_trial(t, pass, layer);
    return e ? &t->config[e->config] : tune_best(t);
}

const struct read_config *tune_best(const struct tune *t)
{
    return t->copies ? &t->for_copies : &t->config[t->best];
}

bool tune_as_planned(const struct tune *t, const struct read_config *c)
{
    return c == &t->config[0];
}

/* After the last trial of a cycle: seconds a layer decide. A configuration that was not measured is not chosen. */
static void conclude(struct tune *t)
{
    t->best = 0;
    for (uint32_t i = 1; i < t->configs; i++)
        if (t->layers[i] && t->layers[t->best] && t->seconds[i] / t->layers[i] < t->seconds[t->best] / t->layers[t->best])
            t->best = i;
    memset(t->seconds, 0, sizeof t->seconds);
    memset(t->layers, 0, sizeof t->layers);
}

static void layer_begins(struct tune *t, uint64_t pass, int layer)
{
    const bool trial = find_trial(t, pass, layer) != NULL;
    if (t->trying && !trial)
        conclude(t);
    t->trying = trial;
}

void tune_pass_begins(struct tune *t, uint64_t pass, int layer, double now)
{
    t->since = now;
    layer_begins(t, pass, layer);
}

void tune_layer_ends(struct tune *t, uint64_t pass, int layer, int next, double now)
{
    const struct trial *e = find_trial(t, pass, layer);
    if (e) {
        t->seconds[e->config] += now - t->since;
        t->layers[e->config]++;
    }
    t->since = now;
    if (next >= 0)
        layer_begins(t, pass, next);
}

void tune_read_ends(struct tune *t, double wall, double cpu)
{
    t->wall += wall;
    t->cpu += cpu;
    if (!t->p.copies || ++t->reads < READS_IN_WINDOW)
        return;
    t->copies = t->cpu > t->wall * (t->copies ? copy_ends : copy_begins);
    t->wall = t->cpu = 0;
    t->reads = 0;
}
