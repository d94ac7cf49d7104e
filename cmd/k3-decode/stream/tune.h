/* SPDX-License-Identifier: Apache-2.0 */
/* tune.h - how tiles are read: how many reads are in flight, measured while the model runs.
 *
 * A device wants many reads queued. Where a read is a copy by a processor, many in flight only take turns on the cores,
 * and their buffers fall out of the caches between one use and the next: a few are faster, down to one tile being read
 * while another is multiplied. The copy may be made here (page cache, holes), which the readers' own processor time
 * shows at once, or by a host that serves a virtual disk from its memory, which only the pace of whole layers shows.
 * So from time to time some layers are read in each configuration, and the one that took least is kept.
 *
 * A state machine: it has no thread, no file and no clock; times come as arguments. Calls on one must not overlap. */
#ifndef TUNE_H
#define TUNE_H

#include "thresholds.h"

#include <stdbool.h>

/* A way to read. */
struct read_config {
    uint32_t reads;          /* in flight at most */
    uint32_t tiles;          /* on their way or in use at most */
    bool keep;               /* products leave weights in the outer caches, where the next copy will write */
};

struct tune_params {
    int layers;              /* of the run; the head counts as layer number `layers` */
    uint32_t depth;          /* reads in flight that were planned for */
    uint32_t tiles;          /* that there is room for */
    uint32_t copies;         /* reads in flight where reads are copies, 0: always depth */
    bool streams;            /* some tiles are read in every pass */
};

enum { TUNE_CONFIGS = 3, TUNE_TRIALS = TUNE_CONFIGS * LARGE_MODEL };

/* One layer to be read in one configuration. */
struct trial {
    int pass;                /* of the cycle of TRIAL_EVERY, from 0 */
    int layer;
    uint32_t config;
};

struct tune {
    struct tune_params p;
    struct read_config config[TUNE_CONFIGS]; /* to try; the first: all that was planned for */
    uint32_t configs;
    struct read_config for_copies; /* where this machine copies: then nothing is tried */
    struct trial trial[TUNE_TRIALS]; /* what to try and when, in order of time */
    int trials;
    uint32_t best;           /* of config */
    bool copies;             /* reading takes this machine's processor time */
    /* the trials of the cycle at hand */
    double seconds[TUNE_CONFIGS]; /* of the layers read in each configuration */
    uint32_t layers[TUNE_CONFIGS]; /* and their number */
    bool trying;
    double since;            /* when the layer at hand was begun */
    /* reads since the last look at processor time */
    double wall, cpu;
    uint32_t reads;
};

void tune_init(struct tune *t, const struct tune_params *p);
/* How a layer of a pass (from 1) is to be read, or was. layer -1: none is meant, the answer is what serves in general. */
const struct read_config *tune_config(const struct tune *t, uint64_t pass, int layer);
/* The best known, on trial or not. */
const struct read_config *tune_best(const struct tune *t);
/* Whether a configuration is the one that was planned for. */
bool tune_as_planned(const struct tune *t, const struct read_config *c);

/* ---- events; `now`, `wall` and `cpu` in seconds ---- */

/* The pass begins with that layer; or one of its layers was used up and the next begins. next: -1 after the last. */
void tune_pass_begins(struct tune *t, uint64_t pass, int layer, double now);
void tune_layer_ends(struct tune *t, uint64_t pass, int layer, int next, double now);
/* A read into the ring took `wall`, and `cpu` of its reader's processor. */
void tune_read_ends(struct tune *t, double wall, double cpu);

#endif
