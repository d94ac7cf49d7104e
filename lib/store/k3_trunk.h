/* SPDX-License-Identifier: Apache-2.0 */
/* k3_trunk.h - k3.trunk: the tiles of the reading order in one file, aligned
 * for direct reads, each with a checksum. k3-trunk(5) describes the bytes.
 */
#ifndef K3_TRUNK_H
#define K3_TRUNK_H

#include "k3_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- reading ------------------------------------------------------------------- */

typedef struct k3_trunk k3_trunk;

/* Opens and checks header, table and end mark (not the tiles). K3_EDATA: cut,
 * damaged, unfinished, or packed from another checkpoint than `ix`, which may
 * be NULL to open the file without its checkpoint. */
int k3_trunk_open(k3_trunk **t, const char *path, const k3_index *ix, k3_err *err);
void k3_trunk_close(k3_trunk *t);
const char *k3_trunk_path(const k3_trunk *t);
/* Tile size that the order was cut with; k3_order_new with it gives the file's tiles in file order. */
uint64_t k3_trunk_tile_bytes(const k3_trunk *t);
uint32_t k3_trunk_tiles(const k3_trunk *t); /* all layers, then the head */
/* Where tile i starts in the file, a multiple of 4096, and the XXH3-64 of its bytes. */
uint64_t k3_trunk_offset(const k3_trunk *t, uint32_t tile);
uint64_t k3_trunk_sum(const k3_trunk *t, uint32_t tile);
uint32_t k3_trunk_bytes(const k3_trunk *t, uint32_t tile); /* weights and the padding between pieces */

enum { K3_TRUNK_PLACE = K3_NAME_MAX + 96 };
/* "tile 17 (language_model.….weight from row 512)" in buf; returns buf. */
char *k3_trunk_place(const k3_trunk *t, uint32_t tile, char buf[K3_TRUNK_PLACE]);

typedef struct k3_trunk_facts {
    uint32_t version;
    k3_fingerprint source;            /* the checkpoint's */
    uint64_t layers, hidden, vocab;
    uint64_t tile_bytes, tiles, pieces;
    uint64_t head_tile;               /* first tile of the head */
    uint64_t trunk_bytes, head_bytes; /* weights without padding */
    uint64_t file_bytes;
    uint64_t disk_bytes;              /* less than file_bytes by its holes */
} k3_trunk_facts;
void k3_trunk_describe(const k3_trunk *t, k3_trunk_facts *facts);

/* ---- packing and checking, which take long ------------------------------------- */

/* What has been done so far. */
typedef struct k3_pack_state {
    uint64_t tiles, tiles_done;
    uint64_t bytes, bytes_done;  /* of the tiles, with padding */
    uint64_t kept;               /* tiles taken over from an interrupted run */
    uint64_t read, written;      /* bytes from storage, bytes to it; holes count in neither */
    uint64_t holes;              /* bytes of the tiles that are holes, those taken over too */
    double seconds;
} k3_pack_state;

typedef struct k3_pack_opts {
    uint64_t tile_bytes; /* 4 KiB .. 16 MiB */
    int threads;         /* that compute at once: checksums */
    int depth;           /* tiles in flight, each read, checked and written by one thread */
    bool plain;          /* no direct reads */
    const char *sums;    /* packing: checksums of the shards; NULL for MODEL/k3.sums if it is there */
    /* Called about ten times a second while the work runs, and once at its end. May be NULL. */
    void (*progress)(void *arg, const k3_pack_state *now);
    void *arg;
} k3_pack_opts;

enum { K3_PACK_TILE_MIN = 4096, K3_PACK_TILE_DEFAULT = 4 << 20, K3_PACK_TILE_MAX = 16 << 20, K3_PACK_DEPTH_MAX = 256 };

/* Packs every layer and the head into `path`. What is done is kept in
 * PATH.part, where a later call goes on; `path` appears at the end by rename.
 * K3_EDATA: a shard, or its checksum in k3.sums, is bad, or changed meanwhile.
 * K3_ESYS: I/O, no space, memory, interrupted by a signal, or another process
 * is packing to the same file. The message says what is kept. */
int k3_trunk_pack(const k3_index *ix, const char *path, const k3_pack_opts *o, k3_pack_state *done, k3_err *err);

/* Reads the whole file: every tile against its checksum, and zeros where
 * nothing is. *damaged lists the bad tiles in file order (malloc'ed, *n of them,
 * NULL if none; may be filled on error too). K3_EDATA names the first. */
int k3_trunk_check(const k3_trunk *t, const k3_pack_opts *o, k3_pack_state *done, uint32_t **damaged, size_t *n,
                   k3_err *err);

#ifdef __cplusplus
}
#endif

#endif
