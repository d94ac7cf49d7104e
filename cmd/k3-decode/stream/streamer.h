/* streamer.h - the inside of the weight source. */
#ifndef STREAMER_H
#define STREAMER_H

#include "stream.h"
#include "k3_direct.h"
#include "k3_cache.h"
#include "k3_trunk.h"

#include <pthread.h>

/* Readers and checkers. */
static inline uint32_t streamer_threads(const struct stream_sizes *p)
{
    return p->depth + p->checkers;
}

enum job_state { JOB_FREE, JOB_QUEUED, JOB_READING, JOB_LANDED, JOB_CHECKING, JOB_READY, JOB_FAILED };

/* A tile on its way: in a ring buffer, or in the pinned arena for good. */
struct entry {
    enum job_state state;
    uint32_t tile;
    int32_t slot;            /* ring buffer, -1 for a pinned tile */
    uint8_t *buf;
    const uint8_t *data;     /* first piece */
};

struct pinned {
    uint8_t *buf;            /* NULL: not pinned */
    const uint8_t *data;     /* NULL: not loaded yet */
    bool asked;              /* its one read has been started */
};

/* Whether the router has chosen an expert; one that it passed over may still be on its way. */
enum standing { WANTED, GUESSED, DROPPED };

/* An expert of the batch at hand, or of the guesses at the next. */
struct expert_job {
    enum job_state state;
    enum standing standing;
    bool given, whole;       /* whole: all bytes are here, checked or not */
    int layer;
    uint16_t number;
    int32_t slot;            /* cache slot, -1: passes through */
    int32_t buffer;          /* of those for experts without a slot; -1: none */
    uint64_t place;          /* shard and offset, for sorting; not of a guess, which is read in order of likelihood */
    uint64_t arrival;
    const uint8_t *part[K3_PARTS];
};

struct expert_slot {
    uint8_t *mem;
    int32_t layer;           /* owner, -1 while empty */
    uint16_t number;
    const uint8_t *part[K3_PARTS];
};

/* A way to read: how many reads are in flight and how many tiles in use, and whether weights are left in the caches. */
struct way {
    uint32_t reads, tiles;
    bool keep;
};

/* Which way is best is measured: tune.c. */
struct tuner {
    struct way way[3];       /* to try; the first: all that was planned for */
    struct way copying;      /* where `copied`: nothing is tried */
    uint32_t ways, best;
    bool copied;             /* reading takes this machine's processor time */
    bool trying;
    double seconds[3];       /* in the trial at hand, of the layers read in each way */
    uint32_t layers[3];      /* and their number */
    double since;            /* when the layer at hand was begun */
    double timed_wall, timed_cpu; /* seconds of the last `timed` reads into the ring */
    uint32_t timed;
};

struct streamer {
    k3_source base;
    const k3_index *ix;
    const k3_config *c;
    k3_trunk *trunk;         /* NULL: tiles come from the shards */
    k3_sums *sums;           /* NULL: nothing to check shards with */
    struct stream_sizes plan;
    k3_order *order;
    k3_direct *shard;        /* [shards], opened when first used */
    k3_direct trunk_file;
    bool said_fallback;

    pthread_mutex_t lock;
    pthread_cond_t work, landed, done; /* for readers, for checkers, for the caller */
    pthread_t *thread;
    uint32_t nthreads;
    bool stop;
    k3_err failure;          /* the first failed read of a tile */
    k3_err expert_failure;

    /* tiles */
    uint8_t *ring_mem, *pin_mem;
    uint64_t ring_bytes, slot_bytes, pin_mem_bytes;
    bool *slot_used;         /* [ring] */
    struct pinned *pin;      /* [tiles] */
    struct entry *entry;     /* [capacity] circular, in order of use */
    uint32_t capacity, first_entry, nentries;
    uint32_t ahead_tile;     /* next tile to start reading */
    uint64_t ahead_pass;     /* of pass number (1 = first) */
    uint64_t pass;           /* passes begun */
    bool head, more;         /* this pass has a head; another follows */
    uint32_t tile, piece;    /* what next() gives next; piece within the tile */
    bool open;               /* a piece is held */

    /* experts */
    k3_policy *policy;
    uint8_t *expert_mem;     /* of slots and buffers, which trade places */
    uint64_t expert_room;    /* bytes of one slot */
    struct expert_slot *slot;
    uint8_t **buffer;        /* [transit + lookahead] for experts without a slot */
    bool *buffer_used;
    struct expert_job **job; /* [experts] the batch: own ones, and guesses that were right */
    struct expert_job *own, *guess; /* [experts], [lookahead] */
    size_t njobs, next_job, ntaken;
    bool ascending;
    uint64_t arrivals;
    int32_t *slot_of;        /* [experts], from the policy */
    uint8_t *hit;

    /* seconds the caller waited, and in which at least one read was in flight */
    double wait_trunk, wait_experts, busy, busy_since;
    uint64_t flight_bytes, flight_most; /* no read starts while so many bytes are in flight */
    uint32_t flight_reads;
    struct tuner tuner;
    uint64_t evictions, pinned_bytes;
    struct guess_counts guesses;
};

/* Memory of one expert slot. */
uint64_t streamer_expert_room(const k3_index *ix);
/* The trunk file to use, or NULL for the shards. */
const char *stream_trunk_path(const struct stream_place *at, char buf[4096]);

/* ---- reading.c: one tile or expert from storage, without the lock ---- */
/* bounce is this thread's buffer for small pieces, which are checked on their way through it. */
int read_tile(struct streamer *s, uint32_t tile, uint8_t *buf, uint8_t *bounce, const uint8_t **data, k3_err *err);
int read_expert(struct streamer *s, int layer, uint16_t number, uint8_t *buf, const uint8_t *part[K3_PARTS], k3_err *err);
/* What was read against its checksum, where there is one. */
int check_tile(struct streamer *s, uint32_t tile, const uint8_t *data, k3_err *err);
int check_expert(struct streamer *s, int layer, uint16_t number, const uint8_t *const part[K3_PARTS], k3_err *err);
uint64_t reading_bounce_bytes(const struct streamer *s);
/* Room that a tile needs in memory, alignment included. */
uint64_t reading_tile_room(const struct streamer *s, const k3_tile *t);
int reading_shard(struct streamer *s, uint32_t shard, k3_direct **d, k3_err *err);

/* ---- tune.c: how much is in flight; callers hold the lock ---- */
void tune_init(struct streamer *s);
/* How that tile of that pass is read, or has been. */
const struct way *tune_way(const struct streamer *s, uint64_t pass, uint32_t tile);
/* A read into the ring took `wall` seconds and `cpu` seconds of the reader's processor. */
void tune_read(struct streamer *s, double wall, double cpu);
/* The pass at hand begins; its tile was the last of a layer. */
void tune_pass(struct streamer *s);
void tune_layer(struct streamer *s, uint32_t tile);

/* ---- experts.c: the slots, the batch at hand and guesses; callers hold the lock ---- */
int experts_init(struct streamer *s, k3_err *err);
void experts_free(struct streamer *s);
/* Counts the guesses that nobody will ask for; no reader runs. */
void experts_end(struct streamer *s);
/* A job that can be read now, marked JOB_READING, or NULL. */
struct expert_job *experts_pick(struct streamer *s, uint8_t **buf);
/* The same of a guess. */
struct expert_job *experts_pick_guess(struct streamer *s, uint8_t **buf);
/* One that is in memory and not checked, or NULL. */
struct expert_job *experts_landed(struct streamer *s);
void experts_arrived(struct streamer *s, struct expert_job *j, int status, const k3_err *why);
int experts_want(k3_source *, int layer, const uint16_t *experts, size_t n, bool ascending, k3_err *err);
void experts_expect(k3_source *, int layer, const uint16_t *experts, size_t n);
int experts_take(k3_source *, k3_expert *out, k3_err *err);
void experts_release(k3_source *, k3_expert *e);

#endif
