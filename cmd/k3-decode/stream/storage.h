/* SPDX-License-Identifier: Apache-2.0 */
/* storage.h - the files: one tile, one expert or one embedding row from trunk file or shards, and its check. Any thread
 * may call these functions at any time.
 *
 *   field                       guarded by
 *   shard[], said_fallback      storage.lock; a shard that is open stays as it is
 *   everything else             nothing: does not change once storage_open() is done */
#ifndef STORAGE_H
#define STORAGE_H

#include "k3_direct.h"
#include "k3_store.h"
#include "k3_trunk.h"

#include <pthread.h>

struct storage {
    const k3_index *ix;
    const k3_config *c;
    k3_order *order;
    k3_trunk *trunk;         /* NULL: tiles come from the shards */
    k3_direct trunk_file;
    k3_sums *sums;           /* NULL: nothing to check shards with */
    k3_direct *shard;        /* [shards] opened when first used */
    bool direct;             /* past the page cache where the file system can */
    bool said_fallback;      /* that it can't */
    pthread_mutex_t lock;
};

/* Layers [0, layers) and the head, cut into tiles of tile_bytes, or as the trunk file at trunk_path has it (NULL: no such
 * file), checked against the checksums at sums_path (NULL: k3.sums of the folder, if it is there). After a failure, too,
 * storage_close() is due. */
int storage_open(struct storage *t, const k3_index *ix, const char *trunk_path, const char *sums_path, uint64_t layers,
                 uint64_t tile_bytes, bool direct, k3_err *err);
void storage_close(struct storage *t);

/* `bounce` is this thread's buffer of storage_bounce_bytes() for small pieces, which are checked on their way through. */
int storage_read_tile(struct storage *t, uint32_t tile, uint8_t *to, uint8_t *bounce, const uint8_t **data, k3_err *err);
int storage_read_expert(struct storage *t, int layer, uint16_t number, uint8_t *to, const uint8_t *part[K3_PARTS], k3_err *err);
/* Rows of the embedding for n ids: rows [n][hidden], bf16; checked. */
int storage_read_rows(struct storage *t, const uint32_t *ids, size_t n, uint16_t *rows, k3_err *err);
/* What was read against its checksum, where there is one. */
int storage_check_tile(const struct storage *t, uint32_t tile, const uint8_t *data, k3_err *err);
int storage_check_expert(const struct storage *t, int layer, uint16_t number, const uint8_t *const part[K3_PARTS], k3_err *err);

uint64_t storage_bounce_bytes(const struct storage *t);
/* Memory that a tile needs, alignment included; arg is the storage. */
uint64_t storage_tile_room(const void *arg, uint32_t tile);
/* Memory that one expert needs, alignment included. */
uint64_t storage_expert_room(const k3_index *ix);
/* A number that grows along the files; arg is the storage. */
uint64_t storage_expert_order(const void *arg, int layer, uint16_t number);

#endif
