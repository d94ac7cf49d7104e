/* plan.h - where every byte of memory goes and how many bytes a token reads,
 * decided before anything is allocated. */
#ifndef PLAN_H
#define PLAN_H

#include "k3_spec.h"
#include "options.h"
#include "streamer.h"

enum { PLAN_ITEMS = 16, UNSET = -1, ULTRA_BYTES = 256000000, MOST_TOGETHER = 32 };

struct plan_item {
    const char *name;
    uint64_t bytes;
};

/* Reads that any device serves at its full rate, and so many that one that reports them
 * together (as virtual disks do) is seldom without the next. */
enum { DEFAULT_TILE = 4 << 20, DEFAULT_IO_DEPTH = 8, LEAST_IO_DEPTH = 2 };

struct rates {
    double trunk;            /* bytes/s of trunk and head, read in order */
    double experts;          /* of experts, at random places */
};

/* The machine as the plan sees it. */
struct machine {
    uint64_t limit;          /* bytes this process may use */
    struct rates assumed;    /* decide the sizes: of one device always the same, so that every run has the same plan */
    struct rates seen;       /* predict the seconds */
    bool two_devices;
    bool measured;           /* the seen rates were measured now */
};

/* What is to be run: the sequences known so far. */
struct demand {
    uint64_t sequences, prompt, positions; /* prompt: tokens in all of them; positions: of the longest */
};

/* What is fixed before the plan is made. */
struct plan_input {
    const struct options *o;
    const k3_config *c;
    uint64_t layers;         /* to run */
    struct demand demand;
    uint64_t expert_room;    /* memory of one expert slot */
    uint64_t bounce;         /* of one reader thread */
    uint64_t trunk_tile;     /* tile size of the trunk file, 0: from the shards */
    uint64_t index_bytes;    /* of the mapped index */
};

struct plan {
    struct stream_plan stream;
    uint64_t sequences;      /* decoded together at most */
    uint64_t draft;          /* tokens drafted at most for each */
    uint64_t tokens;         /* in one pass, at least one and a draft for every sequence */
    uint64_t rows;           /* of logits in one pass */
    uint64_t positions;      /* of one sequence */
    bool spill;              /* KDA state in a scratch file */
    uint64_t budget;         /* what may be used: --memory, or the machine's limit */
    uint64_t total;          /* what will be used */
    struct plan_item item[PLAN_ITEMS];
    int nitems;
    /* bytes a decode step reads */
    uint64_t trunk, head, experts_most, experts, embedding, scratch;
    double hit;              /* share of expert requests expected in the cache */
    double read_seconds, compute_seconds, seconds;
};

/* Fills *p. K3_ESYS if even the least does not fit: the message says what is
 * needed, what there is and up to three changes that fit; *p then holds that least plan. */
int plan_make(struct plan *p, const struct plan_input *in, const struct machine *m, k3_err *err);
/* The presets: NULL name at the end. */
struct preset {
    const char *name;
    double trunk_gb, cache_gb;
    const char *what;
};
extern const struct preset plan_presets[];
void plan_list_presets(bool json);
void plan_print(const struct plan *p, const struct plan_input *in, const struct machine *m, bool json);

#endif
