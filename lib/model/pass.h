/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - the workspace of a pass and the steps it is made of; private to lib/model.
 * Shapes: T tokens in the pass, d hidden, W kda_width, D kda_head_dim, H heads. */
#ifndef K3_PASS_H
#define K3_PASS_H

#include "k3_model.h"

/* Buffers that only one kind of block uses share memory: the union is as large as its largest. */
struct kda_buf {
    float *q, *k, *v;  /* [T][W], before the convolution */
    float *fa;         /* [T][D] */
    float *z;          /* [T][W] */
    float *beta;       /* [T][kda_heads] */
    float *g, *o;      /* [T][W] */
    float *work;       /* [threads][D*D + 3*(conv_kernel-1)*D] state of a head that is not to stay */
};
struct mla_buf {
    float *qa;         /* [T][q_lora_rank] */
    float *q;          /* [T][heads][qk_nope + qk_rope] */
    float *c;          /* [T][kv_lora_rank + qk_rope] */
    float *g, *o;      /* [T][heads][v_dim] */
};
struct mlp_buf {
    float *gate, *up;  /* [T][dense_inter or shared_width] */
};
struct moe_buf {
    float *scores;       /* [T][experts] */
    float *weights;      /* [T][topk] */
    uint16_t *picks;     /* [T][topk] in router order */
    uint16_t *asked;     /* [experts] distinct picks, as k3_distinct orders them */
    uint8_t *seen;       /* [experts] */
    uint32_t *tokens;    /* [T] tokens that use the expert at hand */
    float *z;            /* [T][latent] */
    float *zs;           /* [T][latent], split for MXFP4 */
    float *xs;           /* [T][latent], rows of zs gathered for one expert */
    float *h1, *h3;      /* [T][expert_inter] */
    float *hs;           /* [T][expert_inter], split */
    float *y;            /* [max(T, topk)][latent] */
    float *sum;          /* [T][latent] */
};

struct k3_model {
    const k3_config *c;
    const k3_kernels *k;
    k3_pool *pool;
    k3_hooks hooks;
    size_t max_tokens;
    uint64_t max_positions;
    void *arena;

    const k3_span *spans;
    size_t nspans, tokens;   /* T of this pass */
    uint64_t nsnapshots;

    float *stream;           /* [T][d] the running sum p */
    float **snapshots;       /* [blocks] of [T][d], the list B */
    float *h, *x, *out;      /* [T][d] mixed, normed, block output */
    uint16_t *rows;          /* [T][d] bf16 embedding rows */
    uint32_t *ids;           /* [T] */
    float *vec[K3_TENSORS];  /* the layer's vectors, widened */
    float **worker;          /* scratch of each worker */
    void **kernel;           /* and that of its products, K3_SCRATCH_BYTES */
    k3_reading reading;      /* of the weights at hand */
    float *res_weight;       /* [d] norm * proj of a mix */
    struct kda_buf kda;
    struct mla_buf mla;
    struct mlp_buf mlp;
    struct moe_buf moe;
};

/* Kernel-side cut of rows so that two workers never write one cache line of a row of output. */
enum { ROW_GRAIN = 16, HEAD_BLOCK = 16 };

/* ---- steps ---------------------------------------------------------------------- */

/* Next piece of the source; K3_ESYS "out of order" if it is not that tensor. */
int k3_pass_piece(k3_model *m, k3_source *src, int layer, k3_tensor_id id, const k3_piece **p, const void **data,
               k3_err *err);
/* The layer's vectors into m->vec. */
int k3_pass_vectors(k3_model *m, k3_source *src, int layer, k3_err *err);
/* Vectors that a matrix is multiplied with, one for each row of out: x [T][ldx], out [T][ldo]. */
struct operands {
    const float *x;
    size_t ldx, T;
    float *out;
    size_t ldo;
};
/* out[t*ldo + row] = tensor row . x[t], piece by piece. */
int k3_pass_matrix(k3_model *m, k3_source *src, int layer, k3_tensor_id id, const struct operands *o, k3_err *err);
/* k3_pass_matrix for every token of the pass, all of it side by side: x [T][cols], out [T][rows]. */
int k3_pass_tokens(k3_model *m, k3_source *src, int layer, k3_tensor_id id, const float *x, float *out, k3_err *err);
/* The rows of one piece of that tensor. */
void k3_pass_rows(k3_model *m, const k3_tensor *t, const k3_piece *p, const void *data, const struct operands *o);
/* What a worker's products need. */
k3_work k3_pass_work(const k3_model *m, int worker);
/* Takes and drops a tensor. */
int k3_pass_skip(k3_model *m, k3_source *src, int layer, k3_tensor_id id, k3_err *err);
/* fn(m, arg, worker, begin, end) over n items split in multiples of grain. */
typedef void (*pass_fn)(k3_model *m, void *arg, int worker, size_t begin, size_t end);
void k3_pass_parallel(k3_model *m, size_t n, size_t grain, pass_fn fn, void *arg);
/* RMS norm of every token. */
void k3_pass_norm(k3_model *m, const float *x, size_t n, const float *w, double eps, float *out);

/* h = Mix(snapshots, stream) with the vectors norm and proj. */
void k3_attnres_mix(k3_model *m, const float *norm, const float *proj, float *h);

int k3_kda_block(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err);
int k3_mla_block(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err);
/* down . situ(gate x, up x): the dense MLP of a layer, or its shared experts. */
int k3_mlp_dense(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err);
int k3_mlp_shared(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err);
int k3_moe_block(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err);
int k3_moe_route(k3_model *m, k3_source *src, int layer, const float *x, k3_err *err);
/* Tells the source what one token's router is likely to choose, if its weights are at hand: it gives x about what it
 * will be given. Before the layer's attention, whose buffers are used. */
void k3_moe_guess(k3_model *m, k3_source *src, int layer, const float *x);

/* ---- state, from inside ------------------------------------------------------------ */

struct layer_state {
    float *S;       /* KDA: [kda_heads][D][D] */
    float *history; /* KDA: q, k, v each [conv_kernel-1][W], oldest first */
    float *latent;  /* MLA: [positions][kv_lora_rank + qk_rope] */
};
struct k3_state {
    const k3_config *c;
    uint64_t layers, positions, position;
    float *block;             /* one mapping */
    size_t block_bytes;
    struct layer_state *layer;
    struct spill *spill;      /* NULL: every layer is in memory */
    /* Tentative tokens: what their recurrences were fed with, per KDA layer
     * [most][draft_row] of q, k, v, z (each [W]) and beta ([kda_heads]). */
    float **draft;            /* [layers], NULL where there are none */
    size_t draft_most, draft_n; /* room, and tokens of the tentative span at hand */
    size_t settle;            /* of those, accepted and not yet in S; applied by the next pass */
};

static inline size_t draft_row(const k3_config *c)
{
    return 4 * c->kda_width + c->kda_heads;
}

/* The state of a layer that a block is about to use, and the end of that use. */
int k3_state_enter(k3_state *s, int layer, k3_err *err);
void k3_state_leave(k3_state *s, int layer);

/* ---- spill.c: KDA layers in a scratch file, two at a time in memory ---- */
struct spill;
int k3_spill_new(struct spill **s, const char *dir, uint32_t layers, uint64_t layer_floats, k3_err *err);
void k3_spill_free(struct spill *s);
/* Layers must be entered in turn, 0..layers-1 and round again. */
int k3_spill_enter(struct spill *s, uint32_t index, float **layer, k3_err *err);
void k3_spill_leave(struct spill *s);
uint64_t k3_spill_memory(uint64_t layer_floats); /* bytes */
void k3_spill_traffic(struct spill *s, uint64_t *read_bytes, uint64_t *write_bytes);

#endif
