/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - the fast weight source: reader threads keep several direct reads in flight into a ring of tiles and into
 * expert slots, while the caller computes. This header is all that the rest of k3-decode sees of it: a plan, a handle
 * made from the plan, and counts. */
#ifndef STREAM_H
#define STREAM_H

#include "k3_source.h"

enum { UNSET = -1, MOST_TOGETHER = 32, ULTRA_BYTES = 256000000 };

/* ---- what is asked for ---- */

/* The sequences known so far. */
struct demand {
    uint64_t sequences;
    uint64_t prompt;         /* tokens in all of them */
    uint64_t positions;      /* of the longest, prompt and generated */
};

/* Sizes that the user has fixed. Unless said otherwise 0 leaves the choice to the planner. */
struct limits {
    uint64_t layers;         /* run layers [0, layers); always given */
    int threads;             /* of arithmetic, >= 1 */
    uint64_t memory;         /* bytes; UINT64_MAX: all that is free, for the two below to take from */
    int64_t trunk_bytes;     /* tiles that stay, UNSET: planner */
    int64_t cache_bytes;     /* cached experts, UNSET: planner */
    int64_t lookahead;       /* experts read ahead of their router, UNSET: planner */
    int spill;               /* KDA state in a scratch file: 1 yes, 0 no, UNSET: planner */
    uint64_t gen, context;   /* tokens to generate; positions to plan for at least */
    uint64_t batch, draft;   /* sequences together at most; tokens drafted at most for each, 0: none */
    uint64_t chunk, tile, ring, io_depth;
    int policy;              /* K3_POLICY_* */
    bool direct, huge;
    uint32_t slow_us;        /* every read waits this long first: for tests */
    bool every_row;          /* the logits of every token are wanted */
    bool single;             /* one sequence at a time */
};

/* The files, and what is known or to be found out about their devices. */
struct stream_place {
    const char *model;       /* folder */
    const char *index_path;  /* NULL: k3.index in the folder */
    const char *trunk;       /* a trunk file; NULL: k3.trunk of the folder if there is one; "none": the shards */
    const char *sums;        /* checksums, which must be there; NULL: k3.sums of the folder if there is one */
    uint64_t trunk_rate, expert_rate; /* bytes/s of the two, 0: assumed or measured */
    uint64_t memory_limit;   /* bytes that this process may use, 0: ask the machine */
    bool measure;            /* the rates of the devices, for a prediction */
};

/* ---- the plan ---- */

enum { PLAN_ITEMS = 16 };

struct plan_item {
    const char *name;
    uint64_t bytes;
};

/* Bytes/s. */
struct rates {
    double trunk;            /* of trunk and head, read in order */
    double experts;          /* of experts, at random places */
};

/* The machine as the plan sees it. */
struct machine {
    uint64_t limit;          /* bytes this process may use */
    struct rates assumed;    /* decide the sizes: of one device always the same, so that every run has the same plan */
    struct rates seen;       /* predict the seconds */
    bool two_devices;        /* trunk and experts do not share one */
    bool measured;           /* the seen rates were measured now */
};

/* How much of what the source holds. */
struct stream_sizes {
    uint64_t layers;         /* run layers [0, layers) */
    uint64_t tile_bytes;     /* without a trunk file, which has its own */
    uint32_t ring;           /* tile buffers, >= 2 */
    uint32_t depth;          /* reads in flight, a thread for each */
    uint32_t copies;         /* reads in flight, at most, where a read is a copy by a processor; 0: depth whatever it is */
    uint32_t checkers;       /* threads that compare checksums; 0: the readers do */
    uint64_t pin_bytes;      /* for tiles that stay */
    uint32_t expert_slots;   /* cached experts */
    uint32_t transit;        /* buffers for experts that pass through, >= 1 */
    uint32_t lookahead;      /* experts read before their router has chosen, at most */
    int policy;              /* K3_POLICY_* */
    bool direct, huge;
    k3_reading reading;      /* of weights in memory, by the products */
    bool reading_fixed;      /* always, also where they will soon be written anew */
    uint32_t slow_us;        /* every read waits this long first: for tests */
};

/* Readers and checkers. */
static inline uint32_t stream_threads(const struct stream_sizes *s)
{
    return s->depth + s->checkers;
}

struct plan {
    struct stream_sizes stream;
    struct machine machine;  /* that it was made for */
    int threads;             /* of arithmetic */
    uint64_t sequences;      /* decoded together at most */
    uint64_t draft;          /* tokens drafted at most for each */
    uint64_t tokens;         /* in one pass, at least one and a draft for every sequence */
    uint64_t rows;           /* of logits in one pass */
    uint64_t positions;      /* of one sequence */
    bool spill;              /* KDA state in a scratch file */
    uint64_t budget;         /* bytes that may be used: --memory, or the machine's limit */
    uint64_t total;          /* bytes that will be used */
    struct plan_item item[PLAN_ITEMS];
    int nitems;
    /* bytes a decode step reads */
    uint64_t trunk, head, experts_most, experts, embedding, scratch;
    double hit;              /* share of expert requests expected in the cache */
    double read_seconds, compute_seconds, seconds;
};

/* Where every byte of memory goes and how many bytes a token reads, decided before anything is allocated. With no
 * index (NULL) only the config counts, and experts are taken to be in one piece. K3_ESYS if even the least does not
 * fit: the message says what is needed, what there is and up to three changes that fit; *p then holds that least plan
 * (p->nitems > 0). Other failures are those of the trunk file; *p then is empty. */
int stream_plan(struct plan *p, const struct stream_place *at, const k3_config *c, const k3_index *ix,
                const struct limits *l, const struct demand *d, k3_err *err);
void plan_print(const struct plan *p, bool json);

/* Sizes by name; a NULL name ends the list. */
struct preset {
    const char *name;
    double trunk_gb, cache_gb; /* UNSET: the planner's choice */
    const char *what;
};
extern const struct preset plan_presets[];
void plan_list_presets(bool json);

/* ---- the source ---- */

struct streamer;

/* Opens what `at` names with the sizes of a plan and begins to read; the index must outlive it. */
int stream_open(struct streamer **s, const struct stream_place *at, const k3_index *ix, const struct stream_sizes *sizes, k3_err *err);
/* What k3_forward() takes. */
k3_source *stream_source(struct streamer *s);
/* Whether that expert is in the cache now; for the thread that calls the source. */
bool stream_cached(const struct streamer *s, int layer, uint16_t expert);
/* Starts no more reads and waits for those in flight, after which the counts are final. No pass may follow. */
void stream_stop(struct streamer *s);
void stream_close(struct streamer *s);

/* Lookahead: how many experts were guessed; of them the router chose `right`; of those the read had already begun for
 * `early`; and so many others had been read for nothing. */
struct guess_counts {
    uint64_t made, right, early, wasted;
};

/* Since the source was opened, at one moment. */
struct stream_stats {
    k3_traffic traffic;
    uint64_t evictions;
    uint64_t unused_bytes;   /* read ahead that no pass has used, of tiles and of experts */
    struct guess_counts guesses;
    double wait_trunk, wait_experts; /* seconds the caller waited */
    double busy;             /* seconds in which at least one read was in flight */
    uint64_t pinned_bytes;   /* of weights that stay */
    uint32_t reads_in_flight; /* at most, of the way of reading that was found best so far */
};
void stream_stats(struct streamer *s, struct stream_stats *out);

#endif
