/* SPDX-License-Identifier: Apache-2.0 */
/* store.h - inside lib/store only: the index image, shard discovery, one parsed header. */
#ifndef K3_STORE_INTERNAL_H
#define K3_STORE_INTERNAL_H

#include "k3_store.h"

#include <sys/stat.h>
#include <xxhash.h>

/* ---- k3.index, as mapped (k3-index(5)) ------------------------------------------ */

#define K3_INDEX_MAGIC "K3INDEX"
#define K3_INDEX_END "K3INDEX-END\n\0\0\0" /* 16 bytes with its last NUL */
enum { K3_INDEX_VERSION = 2, K3_INDEX_END_BYTES = 16 };

enum { S_SHARDS, S_TENSORS, S_EXPERTS, S_SCATTERED, S_IGNORED, S_SHAPES, S_NAMES, SECTIONS };

struct section {
    uint64_t offset, bytes, sum; /* offset in the file, a multiple of 8; XXH3-64 of whole words */
};

struct image_head {
    char magic[8];
    uint32_t version, head_bytes;
    uint64_t file_bytes;
    k3_fingerprint fingerprint, config;
    uint32_t layers, tensors_per_layer; /* layers + 1 rows of K3_TENSORS */
    uint64_t moe_layers, experts;
    uint64_t entries; /* all tensors of all shards */
    struct section section[SECTIONS];
    uint64_t sum; /* XXH3-64 of the head before it */
};

struct image_shard {
    char name[48];
    uint64_t size;
    int64_t mtime, ctime; /* ns since 1970 */
    uint64_t header;  /* bytes before the data, 8 + N */
    k3_fingerprint digest; /* XXH3-128 of those bytes */
    k3_fingerprint sample; /* of a sample of every tensor's bytes */
    k3_fingerprint quick;  /* of the part of it that opening may read */
};

/* A place is shard << 46 | offset: 64 TiB a shard. */
enum { PLACE_BITS = 46, PLACE_SHARDS = 1 << 17 };
#define PLACE_NONE UINT64_MAX
#define EXPERT_SCATTERED (UINT64_C(1) << 63) /* the rest is a row of S_SCATTERED: six places */

struct image_tensor {
    uint64_t place, bytes; /* PLACE_NONE: not in this layer */
};

struct image_ignored {
    uint64_t name, shape; /* byte in S_NAMES, number in S_SHAPES */
    uint64_t rank, place, bytes;
    uint64_t dtype; /* index into k3_dtype_table */
};

static inline uint64_t place_of(uint32_t shard, uint64_t offset)
{
    return (uint64_t)shard << PLACE_BITS | offset;
}

static inline uint32_t place_shard(uint64_t place)
{
    return (uint32_t)(place >> PLACE_BITS);
}

static inline uint64_t place_offset(uint64_t place)
{
    return place & ((UINT64_C(1) << PLACE_BITS) - 1);
}

/* What tells whether a shard may have been written to. */
struct shard_state {
    uint64_t size, inode;
    int64_t mtime;
};

struct k3_index {
    k3_config config;
    char *dir;
    char *image; /* the file, read into memory: one that is cut meanwhile must not kill */
    size_t image_bytes;
    const struct image_head *head;
    const struct image_shard *shards;
    const struct image_tensor *tensors;
    const uint64_t *experts, *scattered;
    const struct image_ignored *ignored;
    const uint64_t *shapes;
    const char *names;
    uint32_t nshards;
    uint64_t nignored;
    uint64_t part_bytes[K3_PARTS];
    struct shard_state *seen; /* [nshards]: as they were when the index was opened */
    uint64_t *first; /* [layers + 2]: entries before layer l - 1; one allocation with paths */
    char **paths;
};

/* Points ix at its image after checking all of it; `name` for messages. */
int k3_index_attach(k3_index *ix, const char *name, k3_err *err);
uint64_t k3_section_sum(const char *image, const struct section *s);
k3_fingerprint k3_config_digest(const k3_config *c);
/* Over the config and the shards' sizes, header digests and samples. */
k3_fingerprint k3_index_digest(k3_fingerprint config, const struct image_shard *shards, uint32_t nshards);

/* ---- problems ---------------------------------------------------------------------- */

/* A bounded list: a build stops at the first problem, a check goes on. */
struct problems {
    k3_err *list;
    size_t n, limit;
    uint64_t more; /* beyond the limit */
};

/* Adds *err; true if the work should stop because the list is full. */
bool k3_problems_add(struct problems *p, const k3_err *err);
/* The same, K3_EDATA made up as by k3_fail_at. */
bool k3_problem(struct problems *p, const char *file, const char *tensor, int64_t at, const char *fmt, ...) K3_PRINTF(5, 6);
void k3_problems_free(struct problems *p);

/* A build that goes on after problems; *ix is NULL if there are any. */
int k3_index_build_all(k3_index **ix, const char *dir, int threads, struct problems *p, k3_err *err);
/* The same without samples, for what headers tell. */
int k3_index_build_headers(k3_index **ix, const char *dir, int threads, struct problems *p, k3_err *err);
/* Reads and checks an index file without looking at the shards. */
int k3_index_load(k3_index **ix, const char *dir, const char *path, k3_err *err);
/* K3_EDATA unless the shard is the one that was indexed: by size and times, else by its header. *touched: its times
 * differ. */
int k3_index_check_shard(const k3_index *ix, uint32_t s, const char *name, bool *touched, k3_err *err);
/* K3_EDATA unless every place and shape is that of the shards' headers, which `now` was built from. */
int k3_index_compare(const k3_index *ix, const k3_index *now, const char *name, k3_err *err);

/* ---- samples of the weights ---------------------------------------------------------- */

struct sampled {
    uint64_t offset, bytes;
    bool part, quick; /* of an expert; in the quick digest too */
};

struct sampler {
    int fd;
    const char *name;
    char *buf;
    XXH3_state_t *all, *quick;
};

/* Every so many experts are in the quick digest; 1 if all are. */
uint64_t k3_sample_stride(const k3_config *c);
int k3_sampler_open(struct sampler *s, int fd, const char *name, k3_err *err);
/* The shard's tensors, in order of their offsets. */
int k3_sampler_add(struct sampler *s, const struct sampled *t, k3_err *err);
void k3_sampler_digests(const struct sampler *s, k3_fingerprint *all, k3_fingerprint *quick);
void k3_sampler_close(struct sampler *s);
/* K3_EDATA unless a shard's bytes have the digests of the index, which is called `name`: the quick one only, or both. */
int k3_index_check_sample(const k3_index *ix, uint32_t shard, const char *name, bool quick_only, k3_err *err);

/* ---- dtypes ---------------------------------------------------------------------------- */

struct dtype {
    const char *name;
    uint8_t bits;
};
extern const struct dtype k3_dtype_table[];
/* Index into k3_dtype_table or -1. */
int k3_dtype_find(const char *name);

/* ---- small things ------------------------------------------------------------------------ */

/* "DIR/NAME", malloc'ed; NULL when out of memory. */
char *k3_path_join(const char *dir, const char *name);
/* Bytes of each part of an expert. */
void k3_part_sizes(const k3_config *c, uint64_t bytes[K3_PARTS]);

/* ---- shards ------------------------------------------------------------------------------ */

struct shard_list {
    char (*name)[48]; /* in number order */
    uint32_t n;
};

/* The shards of a folder: model.safetensors, or model-NNNNN-of-NNNNNN.safetensors all
 * with one N. Missing ones, two sets and unfinished downloads are problems; what
 * is there is listed all the same. */
int k3_shards_find(const char *dir, struct shard_list *list, struct problems *p, k3_err *err);
void k3_shards_free(struct shard_list *list);
/* Whether a field of `room` bytes holds the name of a shard and a NUL: no folder, nothing unprintable. */
bool k3_shard_name_valid(const char *field, size_t room);

/* An open shard whose first bytes look like a safetensors file. */
struct shard_file {
    int fd;
    struct stat st;
    uint64_t header; /* 8 + N */
    char *text;      /* all of it and a NUL; the JSON starts at byte 8; malloc'ed */
    k3_fingerprint digest;
};

/* Opens, checks the length field and reads the header. `name` is for messages. */
int k3_shard_open(struct shard_file *f, const char *path, const char *name, k3_err *err);
void k3_shard_close(struct shard_file *f);
static inline int64_t shard_time(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- one header ---------------------------------------------------------------------------- */

struct record {
    uint64_t begin, end; /* relative to the data */
    int16_t layer, tensor; /* k3_name; tensor -1: expert part */
    int8_t part;
    bool ignored;
    uint32_t expert; /* or the index into header.ignored */
    uint32_t at;     /* byte of the entry in the file */
};

struct ignored {
    char *name;
    uint64_t *shape; /* malloc'ed */
    uint64_t rank;
    int dtype;
};

struct header {
    struct record *records; /* in offset order */
    size_t n, cap;
    struct ignored *ignored;
    size_t nignored, ignored_cap;
};

/* Parses and checks the header of one shard against the format and the model's
 * tensor list. Problems go to `p`; the return value is K3_ESYS for lack of memory only. */
int k3_header_parse(struct header *h, const struct shard_file *f, const char *name, const k3_config *c,
                 struct problems *p, k3_err *err);
/* Sorts the records by offset; they must cover `data` bytes behind `header` bytes. */
void k3_header_cover(struct header *h, const char *file, uint64_t header, uint64_t data, struct problems *p);
void k3_header_free(struct header *h);
/* The record's full name; buf holds K3_NAME_MAX. */
const char *k3_record_name(const struct header *h, const struct record *r, char *buf);

#endif
