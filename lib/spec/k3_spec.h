/* SPDX-License-Identifier: Apache-2.0 */
/* k3_spec.h - what a checkpoint must contain: the configuration, the list of
 * tensors and the order in which a pass reads them. Pure facts, no weights.
 *
 * This sits below the store and the model because the index, the packer, the
 * streamer, the planner and the forward pass all expand the same list.
 */
#ifndef K3_SPEC_H
#define K3_SPEC_H

#include "k3_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- configuration -------------------------------------------------------- */

enum { K3_MAX_LAYERS = 4096, K3_MAX_EOS = 8 };

/* config.json, understood. Sizes are elements; released values in the comments. */
typedef struct k3_config {
    uint64_t hidden;         /* 7168 */
    uint64_t layers;         /* 93 */
    uint64_t vocab;          /* 163840 */
    uint64_t dense_inter;    /* 33792, MLP of the dense layers */
    uint64_t first_moe;      /* 1: layers before it are dense */
    uint64_t heads;          /* 96, MLA */
    uint64_t q_lora_rank;    /* 1536 */
    uint64_t kv_lora_rank;   /* 512 */
    uint64_t qk_nope;        /* 128 */
    uint64_t qk_rope;        /* 64 */
    uint64_t v_dim;          /* 128 */
    uint64_t experts;        /* 896 */
    uint64_t topk;           /* 16 */
    uint64_t shared;         /* 2 */
    uint64_t expert_inter;   /* 3072 */
    uint64_t latent;         /* 3584, what routed experts see */
    uint64_t block;          /* 12, attention-residual block */
    uint64_t max_positions;  /* 1048576 */
    uint64_t kda_heads;      /* 96 */
    uint64_t kda_head_dim;   /* 128 */
    uint64_t conv_kernel;    /* 4 */
    double eps;              /* 1e-5, every RMS norm but the two latent ones */
    double latent_eps;       /* mla_latent_norm_eps, default eps */
    double routed_scale;     /* 1.0 */
    double beta, linear_beta; /* 4, 25: SiTU caps */
    double gate_lower_bound; /* -5 */
    uint64_t kda_width;      /* derived: kda_heads * kda_head_dim */
    uint64_t shared_width;   /* derived: shared * expert_inter */
    uint64_t kda_layers, mla_layers, moe_layers; /* derived counts */
    uint32_t eos[K3_MAX_EOS]; /* end-of-sequence ids of the config */
    int neos;
    uint8_t is_mla[K3_MAX_LAYERS]; /* 0-based; otherwise the layer is KDA */
} k3_config;

/* Reads DIR/config.json. K3_EUSAGE with every missing or odd field named if it
 * is not understood; K3_ESYS if it cannot be read. */
int k3_config_load(const char *dir, k3_config *c, k3_err *err);

/* The same from text; `file` names it in messages. */
int k3_config_parse(const char *text, size_t size, const char *file, k3_config *c, k3_err *err);

static inline bool k3_is_moe(const k3_config *c, uint64_t layer)
{
    return layer >= c->first_moe;
}

/* Snapshots on the attention-residual list when `layer` (or, for layer = layers, the head) mixes. */
static inline uint64_t k3_snapshots_before(const k3_config *c, uint64_t layer)
{
    return (layer + c->block - 1) / c->block;
}

/* ---- tensors ------------------------------------------------------------------ */

typedef enum k3_dtype { K3_BF16, K3_F32, K3_U8, K3_DTYPES } k3_dtype;
extern const char *const k3_dtype_name[K3_DTYPES]; /* as in safetensors */
extern const uint8_t k3_dtype_size[K3_DTYPES];     /* bytes */

typedef enum k3_tensor_id {
#define VECTOR(id, ...) K3_T_##id,
#define MATRIX(id, ...) K3_T_##id,
#define ROWS(id, ...) K3_T_##id,
#include "schema.def"
    K3_TENSORS
} k3_tensor_id;

typedef enum k3_part_id {
#define EXPERT(id, ...) K3_P_##id,
#include "schema.def"
    K3_PARTS /* 6 parts of a routed expert, in file order */
} k3_part_id;

typedef enum { K3_USE_VECTOR, K3_USE_MATRIX, K3_USE_ROWS } k3_use;
typedef enum { K3_IN_ALL, K3_IN_KDA, K3_IN_MLA, K3_IN_DENSE, K3_IN_MOE, K3_IN_HEAD, K3_IN_EMBED } k3_place;

/* One tensor of one layer. */
typedef struct k3_tensor {
    const char *name;  /* without prefix */
    k3_dtype dtype;
    k3_use use;
    k3_place place;
    int rank;          /* dimensions in the file: 1 [cols], 2 [rows, cols], 3 [rows, 1, cols] */
    uint64_t rows, cols, group;
    uint64_t bytes;    /* rows * cols * dtype size */
} k3_tensor;

enum { K3_NAME_MAX = 160 };
#define K3_PREFIX "language_model."

/* False if tensor `id` does not exist in `layer` (layer -1 for embedding and head). t may be NULL. */
bool k3_schema_tensor(const k3_config *c, int layer, k3_tensor_id id, k3_tensor *t);
/* Part of a routed expert: U8, rank 2. */
void k3_schema_part(const k3_config *c, k3_part_id part, k3_tensor *t);
/* Bytes of one routed expert, all parts; 17,547,264 in the release. */
uint64_t k3_expert_bytes(const k3_config *c);

/* Full names in the checkpoint; buf holds K3_NAME_MAX. Return buf. */
char *k3_tensor_name(char *buf, int layer, k3_tensor_id id);
char *k3_part_name(char *buf, int layer, uint64_t expert, k3_part_id part);

/* What a full name stands for. */
typedef struct k3_name {
    int layer;          /* -1 outside layers */
    int tensor;         /* k3_tensor_id, or -1 if it is an expert part */
    int64_t expert;     /* -1 if it is no expert part */
    int part;           /* k3_part_id or -1 */
} k3_name;
/* False if the name is none of the model's (vision tower, projector, unknown). */
bool k3_name_parse(const char *name, k3_name *out);
/* True for names that a text engine ignores: everything outside `language_model.`. */
bool k3_name_ignored(const char *name);
/* A pattern without wildcards matches anywhere in a full name; one with them (fnmatch) the
 * whole name, with or without K3_PREFIX. */
bool k3_name_matches(const char *pattern, const char *name);

/* ---- reading order ---------------------------------------------------------------- */

/* A row range of one tensor. */
typedef struct k3_piece {
    int16_t layer;      /* -1 for the head */
    uint8_t tensor;     /* k3_tensor_id */
    uint32_t row0, rows;
    uint32_t offset;    /* in its tile, a multiple of 64 */
    uint32_t bytes;
} k3_piece;

/* What is read and released as one: consecutive pieces of the order. */
typedef struct k3_tile {
    uint32_t first, npieces; /* into k3_order.pieces */
    uint32_t bytes;          /* with the padding between pieces */
    int16_t layer;           /* -1 for the head */
} k3_tile;

typedef struct k3_order {
    uint32_t ntiles, npieces;
    uint32_t head;           /* first tile of the head */
    uint32_t largest;        /* bytes of the largest tile */
    uint64_t trunk_bytes;    /* weight bytes (no padding) before the head */
    uint64_t head_bytes;
    k3_tile *tiles;
    k3_piece *pieces;
} k3_order;

/* Rows of a tensor that go into one tile of at most `tile_bytes`: whole row groups, at least one; of a vector all. */
uint64_t k3_tile_rows(const k3_tensor *t, uint64_t tile_bytes);

/* Layers [first, last) and, if `head`, the head, cut into tiles of at most
 * `tile_bytes` (4 KiB .. 1 GiB); a row group larger than that is a tile of its own.
 * Small vectors share tiles; a tile never spans two layers. K3_ESYS when out of memory. */
int k3_order_new(k3_order **order, const k3_config *c, uint64_t first, uint64_t last, bool head, uint64_t tile_bytes,
                 k3_err *err);
void k3_order_free(k3_order *order);

#ifdef __cplusplus
}
#endif

#endif
