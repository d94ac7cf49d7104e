/* SPDX-License-Identifier: Apache-2.0 */
/* thresholds.h - every fraction and threshold that the planner and the tuner decide by, and why it is what it is. */
#ifndef THRESHOLDS_H
#define THRESHOLDS_H

#include <stdint.h>

/* ---- planner: what is counted ---- */
static const uint64_t program_bytes = 10 << 20;  /* code, libraries, stdio, JSON: measured 4 to 7 MB */
static const uint64_t stack_bytes = 160 << 10;   /* touched by one thread, arena included */
static const uint64_t without_index_bytes = 2 << 20; /* what reading every shard's header leaves behind, beside the entries */

/* ---- planner: how much may be used ---- */
static const uint64_t default_bytes = 8000000000; /* with no size given: a run that is no burden on a machine of 16 GB */
static const uint64_t spare_part = 10;           /* a tenth of what is free is left, unless more was asked for outright */

/* ---- planner: sizes of the streaming ---- */
enum {
    DEFAULT_TILE = 4 << 20,   /* large enough for the full rate of any device, small enough that a ring of many is cheap */
    DEFAULT_IO_DEPTH = 8,     /* reads in flight: any device serves its full rate; one that reports them together, as */
    LEAST_IO_DEPTH = 2,       /* virtual disks do, is seldom without the next. Two keep it from waiting for us */
    LEAST_RING = 2,           /* tiles: one is multiplied while another is read */
    TILES_A_READ = 2,         /* of a full ring: one in flight, one that has come */
    TILES_IN_HAND = 2,        /* and these: the one being multiplied, and one being checked */
    CHECKERS = 2,             /* threads that compare checksums of a packed trunk: one checks 8 GB/s or more */
    MOST_TOKENS = 256,        /* of a pass: then arithmetic takes longer than reading on any disk */
    MORE_TRANSIT = 3,         /* buffers for passing experts beside the first: one is multiplied, three arrive */
    READS_OF_MARGIN = 4,      /* the state goes to scratch rather than leave less than this many tiles and experts of room */
};

/* Largest to smallest: the first that fits is taken. */
static const uint64_t tile_sizes[] = {DEFAULT_TILE, 2 << 20, 1 << 20, 256 << 10, 64 << 10};

/* ---- planner: shares of what is spare, in the order in which they are taken ---- */
static const uint64_t together_part = 2; /* half for sequences decoded together: a pass serves them all */
static const uint64_t tokens_part = 3;   /* a third for the tokens of a pass: every pass saved is a trunk not read */
static const uint64_t transit_part = 3;  /* a third at most for passing experts: a small machine has little else */
static const uint64_t ring_part = 2;     /* half of what is then left for tiles; the rest is for pins and cache */

/* ---- planner: predictions ---- */
static const double compute_rate = 20e9;   /* weight bytes/s that one thread multiplies: 23 of two threads measured */
static const double assumed_rate = 3e9;    /* bytes/s of a device that nothing is known of */
static const double guesses_right = 0.85;  /* share of lookahead guesses, measured on the small trained model */
static const double least_gain = 0.999;    /* a lookahead must save a thousandth of the time: less is rounding */
enum { SPLIT_STEPS = 64 };                 /* divisions tried between pins and cache: 1.6 % of the spare memory each */

/* ---- tuner ---- */
enum {
    TRIAL_EVERY = 16,         /* passes between two trials: they cost under 1 %, and a device changes slowly */
    WARM_UP_PASSES = 1,       /* the first pass loads what stays, and is like no other */
    LAYER_KINDS = 4,          /* layers of a large model repeat after so many: three KDA and one MLA */
    LARGE_MODEL = 24,         /* layers: a trial of every configuration on every kind fits into one pass, twice over */
    READS_IN_WINDOW = 32,     /* reads whose processor time is looked at together: about one layer */
};
/* Processor seconds a second of reading from which it is a copy by this machine: a device of 4 GB/s takes a fiftieth,
 * a copy all that it does not wait for a core. Two values, so that one in between changes nothing. */
static const double copy_begins = 1 / 4.0, copy_ends = 1 / 8.0;

#endif
