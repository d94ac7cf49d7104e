/* SPDX-License-Identifier: Apache-2.0 */
/* trunk.h - inside lib/store only: the bytes of k3.trunk, the shards to pack
 * from, the part file, and the crew of threads that packs or checks. */
#ifndef K3_TRUNK_INTERNAL_H
#define K3_TRUNK_INTERNAL_H

#include "k3_direct.h"
#include "k3_trunk.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>

/* ---- k3.trunk (k3-trunk(5)) --------------------------------------------------------
 *   0            head, padded to a block; its last 8 bytes are its checksum
 *   4096         table: one entry a tile, zeros up to data_offset
 *   data_offset  tiles in order, each at the next multiple of a block
 *   file_bytes - 32   end mark */

#define TRUNK_MAGIC "K3TRUNK"
#define TRUNK_PART_MAGIC "K3TPART" /* in PATH.part, until everything is there */
#define TRUNK_END "K3TRUNK-END\n\0\0\0" /* 16 bytes with its last NUL */
enum {
    TRUNK_VERSION = 1,
    TRUNK_BLOCK = 4096,
    TRUNK_DATA = 65536, /* tiles begin at a multiple of it, so that no memory page holds both table and tile */
};

struct trunk_head {
    char magic[8];
    uint32_t version, head_bytes; /* TRUNK_BLOCK */
    uint64_t file_bytes;
    k3_fingerprint source;
    uint64_t state;     /* XXH3-64 over the shards' sizes and times when packing began */
    uint64_t order;     /* XXH3-64 over the pieces: names, rows, places */
    uint64_t tile_bytes, tiles, head_tile, pieces;
    uint64_t trunk_bytes, head_weights;
    uint64_t layers, hidden, vocab;
    uint64_t table_offset, table_bytes; /* with the padding */
    uint64_t table_sum; /* XXH3-64; 0 in a part */
    uint64_t data_offset;
};

enum { STORED_NOT = 0, STORED_PLAIN = 1 }; /* trunk_entry.stored; 0 in a part where the tile has not been written */

struct trunk_entry {
    uint64_t offset;     /* in the file */
    uint64_t sum;        /* XXH3-64 of the bytes in the file */
    uint32_t bytes;      /* of the tile */
    uint32_t file_bytes; /* of it in the file */
    uint32_t row0;       /* of the first piece */
    int16_t layer;       /* -1 for the head */
    uint8_t tensor;      /* k3_tensor_id of the first piece */
    uint8_t stored;
};

struct trunk_end {
    char magic[16];
    uint64_t file_bytes, head_sum;
};

union trunk_head_block {
    struct trunk_head head;
    uint64_t word[TRUNK_BLOCK / 8]; /* the last one is the sum of the others */
};

static inline uint64_t trunk_padded(uint64_t bytes)
{
    return (bytes + TRUNK_BLOCK - 1) / TRUNK_BLOCK * TRUNK_BLOCK;
}

static inline bool trunk_is_zero(const uint8_t *p, uint64_t n)
{
    return !n || (!p[0] && !memcmp(p, p + 1, n - 1));
}

uint64_t k3_trunk_head_sum(const union trunk_head_block *b);
/* XXH3-64 over the pieces; 0 when out of memory. */
uint64_t k3_trunk_order_digest(const k3_order *o);
/* Head and table without sums for a file that is to hold the tiles of `o`; *table
 * is malloc'ed, table_bytes long. */
int k3_trunk_lay_out(const k3_index *ix, const k3_order *o, uint64_t tile_bytes, struct trunk_head *head,
                  struct trunk_entry **table, k3_err *err);

struct k3_trunk {
    char *path;
    int fd;
    struct trunk_head head;
    struct trunk_entry *table;
};

/* ---- the checkpoint's shards -------------------------------------------------------- */

struct shards {
    const k3_index *ix;
    k3_sums *sums;     /* NULL if there is no k3.sums */
    k3_direct *file;   /* opened when first used */
    bool plain, said_fallback;
    pthread_mutex_t lock;
};

int k3_shards_open(struct shards *s, const k3_index *ix, bool plain, k3_err *err);
void k3_shards_close(struct shards *s);
/* XXH3-64 over every shard's size and mtime as they are now. */
int k3_shards_state(const k3_index *ix, uint64_t *state, k3_err *err);

/* One thread's buffers. */
struct tile_buf {
    uint8_t *tile, *bounce;
    uint64_t tile_room, bounce_room;
};
int k3_tile_buf_new(struct tile_buf *b, const k3_index *ix, const k3_order *o, k3_err *err);
void k3_tile_buf_free(struct tile_buf *b);

/* Reads a tile, piece by piece, to the start of b->tile, with zeros up to a whole
 * block after it; checks A_log tails. *read counts bytes from storage, 0 if all of it is holes. */
int k3_shards_read_tile(struct shards *s, const k3_order *o, uint32_t tile, struct tile_buf *b, uint64_t *read, k3_err *err);
/* The tile against k3.sums, if there is one. */
int k3_shards_check_tile(struct shards *s, const k3_order *o, uint32_t tile, const uint8_t *data, k3_err *err);
/* At most how many bytes of the tile are not holes in the packed file. */
int k3_shards_tile_space(struct shards *s, const k3_order *o, uint32_t tile, uint64_t *bytes, k3_err *err);

/* ---- PATH.part ---------------------------------------------------------------------------- */

/* The file on its way. A tile is on record once its table entry is written,
 * which is believed only after the tile's bytes were compared with it. */
struct part {
    char *target, *path;
    int fd;
    int direct_fd; /* for tiles; fd itself where direct writes are not to be had */
    union trunk_head_block block;
    struct trunk_entry *table;
    bool resumed; /* something was on record */
    bool fresh;   /* nothing was written before: holes need no punching */
};

/* Opens or begins PATH.part for the file described by head and table (which it
 * takes over). Locks it: K3_ESYS if another process has it. `plain`: no direct writes. */
int k3_part_open(struct part *p, const char *path, const struct trunk_head *head, struct trunk_entry *table, bool plain,
              k3_err *err);
/* Writes what is not zero of a tile; *written counts bytes. The data is block
 * aligned, followed by zeros up to a whole block. */
int k3_part_write(struct part *p, uint32_t tile, const uint8_t *data, uint64_t *written, k3_err *err);
/* Puts a written tile on record. */
int k3_part_record(struct part *p, uint32_t tile, uint64_t sum, k3_err *err);
/* Table, end mark, head; on disk and in place. */
int k3_part_finish(struct part *p, k3_err *err);
/* Closes; removes the part file if `keep` is false. NULL members are fine. */
void k3_part_close(struct part *p, bool keep);

/* ---- crew ------------------------------------------------------------------------------------ */

/* `depth` threads take the tiles 0..n one after the other. */
struct crew {
    const k3_pack_opts *o;
    k3_pack_state now;
    k3_err failure;      /* the first one */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    sem_t compute;       /* limits the threads that calculate */
    uint32_t next, n;
    int running;
    bool stop;
    /* One tile, in any thread; `worker` numbers it. Adds what it did to *did. */
    int (*tile)(struct crew *c, void *arg, int worker, uint32_t tile, k3_pack_state *did, k3_err *err);
    void *arg;
};

/* Runs the crew over n tiles of `bytes` in all; stops at the first failure or a signal. */
int k3_crew_run(struct crew *c, uint32_t n, uint64_t bytes, k3_err *err);
/* The number of threads it will use. */
int k3_crew_size(const k3_pack_opts *o, uint32_t n);

#endif
