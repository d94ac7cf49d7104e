/* SPDX-License-Identifier: Apache-2.0 */
/* k3_store.h - where the weights are: the strict safetensors reader, the index
 * file k3.index and the checksums in k3.sums. Nothing here computes.
 *
 * All offsets are absolute byte offsets in a shard file. Handles may be read
 * by several threads at once; building and closing is for one thread.
 */
#ifndef K3_STORE_H
#define K3_STORE_H

#include "k3_base.h"
#include "k3_spec.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files beside the model ------------------------------------------------------ */
/* k3.index, k3.sums and k3.trunk are in the model folder, or in the folder that the
 * environment variable K3_SIDECAR names: there they are looked for first, and there they
 * are written. Both return a malloc'ed path, NULL when out of memory. */

/* The file to read: in K3_SIDECAR if it is there, else in the model folder, there or not. */
char *k3_sidecar_find(const char *model_dir, const char *name);
/* The file to write. */
char *k3_sidecar_place(const char *model_dir, const char *name);

/* ---- index -------------------------------------------------------------------- */

typedef struct k3_index k3_index;

/* A run of bytes in one shard file. */
typedef struct k3_extent {
    uint32_t shard;         /* number for k3_index_shard_path */
    uint64_t offset, bytes; /* absolute in the shard file */
} k3_extent;

/* Opens MODEL/k3.index, or `index_file` if not NULL, and compares every shard
 * with it: same size and times, or same size and header. Small models, and those whose
 * shards' times differ, also have every place in the index compared with the headers.
 * Without the default
 * file the index is built in memory with one k3_note line and nothing is written;
 * a named file must exist (K3_ESYS).
 * K3_EDATA: stale ("run k3-index"), damaged, cut, foreign, or a shard that is
 * not valid. K3_EUSAGE: config.json is not understood. K3_ESYS: cannot be read. */
int k3_index_open(k3_index **ix, const char *model_dir, const char *index_file, k3_err *err);

/* Reads every shard's header with `threads` threads and checks all of it:
 * SPEC of safetensors, the model's tensor list, zero A_log tails. */
int k3_index_build(k3_index **ix, const char *model_dir, int threads, k3_err *err);

/* Before a file is used whose fingerprint says that it is of this model: K3_EDATA if a shard may have been written
 * to since the index was made and a sample of its weights differs. Some milliseconds. */
int k3_index_check_weights(const k3_index *ix, k3_err *err);

/* Looks at the shards again, at the end of work that read them: K3_EDATA if one was
 * written to since k3_index_open. */
int k3_index_unchanged(const k3_index *ix, k3_err *err);

/* Writes the file that k3_index_open reads; it appears whole or not at all. */
int k3_index_write(const k3_index *ix, const char *path, k3_err *err);

/* Frees it and what it handed out; NULL is fine. */
void k3_index_close(k3_index *ix);

/* The model's config, as it was when the index was made; belongs to the index. */
const k3_config *k3_index_config(const k3_index *ix);
const char *k3_index_dir(const k3_index *ix); /* the model folder as given */
/* Over the config, every shard's size and every shard's header, so over each
 * tensor's name, dtype, shape and place; not over mtimes or the folder. */
k3_fingerprint k3_index_fingerprint(const k3_index *ix);

/* Where tensor `id` of `layer` (-1: embedding and head) is; false if the model
 * has none there. at->bytes is the schema's size: of A_log the first
 * kda_heads entries. */
bool k3_index_tensor(const k3_index *ix, int layer, k3_tensor_id id, k3_extent *at);

/* Bytes in the file: more than the schema's for a padded A_log; 0 if there is no such tensor. */
uint64_t k3_index_stored_bytes(const k3_index *ix, int layer, k3_tensor_id id);

/* The six parts of a routed expert. True if they are adjacent in part order,
 * so that one read of k3_expert_bytes from part[0].offset gets them all.
 * The layer must be a MoE layer and the expert below the config's count. */
bool k3_index_expert(const k3_index *ix, int layer, uint64_t expert, k3_extent part[K3_PARTS]);

/* K3_EDATA unless entries kda_heads .. count of `stored`, float32 at any address, are all zero: which channels the
 * released 128 entries mean is only unambiguous when the tail is padding. */
int k3_a_log_check(const k3_index *ix, int layer, const void *stored, uint64_t count, k3_err *err);

/* How many shards there are; they are numbered from 0. */
uint32_t k3_index_shards(const k3_index *ix);
const char *k3_index_shard_name(const k3_index *ix, uint32_t shard); /* file name without folder */
const char *k3_index_shard_path(const k3_index *ix, uint32_t shard);
uint64_t k3_index_shard_size(const k3_index *ix, uint32_t shard);    /* bytes */
uint64_t k3_index_shard_header(const k3_index *ix, uint32_t shard);  /* bytes before the data, 8 + N */

/* ---- all tensors, ignored ones too ------------------------------------------------ */

typedef struct k3_entry {
    const char *name;      /* full name; in name_buf or in the index */
    const char *dtype;     /* as in safetensors */
    uint64_t rank;
    const uint64_t *shape; /* in shape_buf or in the index */
    k3_extent at;          /* the stored bytes */
    k3_name id;            /* meaningless if ignored */
    bool ignored;          /* outside `language_model.`: projector, vision tower */
    char name_buf[K3_NAME_MAX];
    uint64_t shape_buf[3];
} k3_entry;

/* Number of tensors; entry i < count in the order head, layers (tensors, then
 * experts by number and part), ignored. The entry is filled in place: do not copy it. */
uint64_t k3_index_count(const k3_index *ix);
void k3_index_entry(const k3_index *ix, uint64_t i, k3_entry *e);

/* Finds a full name, or one without `language_model.`; false if there is none. */
bool k3_index_find(const k3_index *ix, const char *name, k3_entry *e);

/* ---- check: every problem at once ---------------------------------------------------- */

typedef struct k3_check {
    uint32_t shards;     /* found */
    uint64_t tensors;    /* 0 if the headers have problems */
    uint64_t bytes;      /* of all shards found */
    size_t problems;
    k3_err *problem;     /* one each, in shard order; K3_EDATA or K3_ESYS */
    uint64_t more;       /* problems beyond those listed */
    bool sums;           /* there is a k3.sums, and it is of this model */
} k3_check;

/* Checks a model folder without reading weights: every shard present and whole, every
 * header valid, every tensor there once; the shards unchanged since MODEL/k3.index (or
 * `index_file`) was written, if there is one; as large as `sizes_file` says, if given
 * (lines of a file name and a number of bytes); agreeing with
 * model.safetensors.index.json and k3.sums, if they are there. Status 0 and the problems in *out;
 * another status only if the check could not be made: folder, config, memory. */
int k3_index_check(k3_check *out, const char *model_dir, const char *index_file, const char *sizes_file, int threads,
                   k3_err *err);
void k3_check_free(k3_check *c);

/* ---- checksums: the sidecar k3.sums ------------------------------------------------- */
/* One XXH3-64 for every row group of every matrix and of the embedding (the
 * schema's group, the least that is ever read at once), one for every vector,
 * one for every part of every expert. So every legal read can be checked whole. */

typedef struct k3_sums k3_sums;

/* Opens MODEL/k3.sums (or `path`). *sums = NULL and 0 if the default file does
 * not exist; all calls below accept NULL and then check nothing.
 * K3_EDATA: cut, damaged or of another model. */
int k3_sums_open(k3_sums **sums, const k3_index *ix, const char *path, k3_err *err);
void k3_sums_close(k3_sums *sums);

/* Compares rows [row0, row0 + rows) of a tensor, just read, with their sums. row0
 * and rows are multiples of the group (rows may end at the tensor's end); a
 * vector is checked whole. Reads 8 bytes a group from the sidecar.
 * K3_EDATA names shard, tensor and offset; K3_ESYS if the sidecar cannot be read. */
int k3_sums_tensor(const k3_sums *sums, int layer, k3_tensor_id id, uint64_t row0, uint64_t rows, const void *data,
                   k3_err *err);
/* The same for one part of an expert, and for all six laid out one after the other. */
int k3_sums_part(const k3_sums *sums, int layer, uint64_t expert, k3_part_id part, const void *data, k3_err *err);
int k3_sums_expert(const k3_sums *sums, int layer, uint64_t expert, const void *data, k3_err *err);

/* Rows that have one sum together: the schema's group, or all rows of a vector. */
uint64_t k3_sums_rows(const k3_tensor *t);

/* Writing: sums are put in any order, by several threads, each once; the file
 * appears at commit. */
typedef struct k3_sums_writer k3_sums_writer;
int k3_sums_create(k3_sums_writer **w, const k3_index *ix, const char *path, k3_err *err);
/* Of rows [row0, row0 + rows) and of a part, as above; `sums` gets nothing before commit. */
int k3_sums_put_tensor(k3_sums_writer *w, int layer, k3_tensor_id id, uint64_t row0, uint64_t rows, const void *data,
                       k3_err *err);
int k3_sums_put_part(k3_sums_writer *w, int layer, uint64_t expert, k3_part_id part, const void *data, k3_err *err);
/* Frees the writer either way. */
int k3_sums_commit(k3_sums_writer **w, k3_err *err);
void k3_sums_abort(k3_sums_writer **w);

#ifdef __cplusplus
}
#endif

#endif
