/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.h - the kernels at the sizes the model uses them, split over workers as the model splits them. */
#ifndef SHAPES_H
#define SHAPES_H

#include <math.h>
#include <stdint.h>

#include "k3_kernel.h"

#define BIG ((size_t)1700 << 20) /* holds the weights of a layer and 16 experts */
enum { MAX_WORKERS = 64 };
enum { SCALES = 112 << 20, ACT = 24 << 20, HEADS = 96, POSITIONS = 8192, LATENT = 512, KEY = 576 };

typedef struct {
    const k3_kernels *K;
    char *weights; /* BIG bytes: bf16 or f32 in +-1, or MXFP4 codes; each run takes the next stretch */
    size_t at;
    uint8_t *scale; /* SCALES bytes */
    float *x, *out; /* ACT bytes each */
    size_t rows, n, T;
    struct layers *layers;
    k3_compact compact; /* Gaussian weights */
    k3_work work[MAX_WORKERS];
} scene;

typedef struct {
    const char *name, *shape;
    size_t rows, n, T;
    double bytes, flops; /* of one run, read and written; bytes 0: those of the layer */
    enum { CACHED, READ, UPDATED } from; /* where the bytes come from: cache, or memory, where they may be written back */
    void (*run)(void *scene, int worker, int workers);
    double (*part)(scene *s); /* instead of run: seconds of a part of the forward pass, which uses the pool itself */
} bench;

static inline void run_bf16(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(s->rows, 16, worker, workers, &b, &e);
    const k3_weights w = {.data = s->weights + s->at + 2 * b * s->n, .rows = e - b, .cols = s->n};
    if (e > b)
        s->K->mm_bf16(s->out + b, s->rows, &w, &(k3_vectors){s->x, s->T, s->n}, &s->work[worker]);
}

static inline void run_mxfp4(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(s->rows, 16, worker, workers, &b, &e);
    const k3_weights w = {s->weights + s->at + b * s->n / 2, s->scale + s->at / 16 + b * s->n / 32, e - b, s->n};
    if (e > b)
        s->K->mm_mxfp4(s->out + b, s->rows, &w, &(k3_vectors){s->x, s->T, s->n}, &s->work[worker]);
}

/* The whole of one matrix, which no cache holds. */
static inline void run_compact(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(s->rows, 16, worker, workers, &b, &e);
    if (e > b)
        s->K->mm_compact(s->out + b, s->rows, &s->compact, b, e - b, &(k3_vectors){s->x, s->T, s->n}, &s->work[worker]);
}

/* A tile of it that the caches hold: what decoding costs. */
static inline void run_compact_cached(void *arg, int worker, int workers)
{
    scene *s = arg;
    (void)workers;
    s->K->mm_compact(s->out + s->rows * (size_t)worker, s->rows, &s->compact, s->rows * (size_t)worker, s->rows,
                     &(k3_vectors){s->x, s->T, s->n}, &s->work[worker]);
}

static inline void run_f32(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(s->rows, 16, worker, workers, &b, &e);
    const k3_weights w = {.data = s->weights + s->at + 4 * b * s->n, .rows = e - b, .cols = s->n};
    if (e > b)
        s->K->mm_f32(s->out + b, s->rows, &w, &(k3_vectors){s->x, s->T, s->n}, &s->work[worker]);
}

/* q folded into the latent space: one [128][512] matrix a head */
static inline void run_absorb(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(HEADS, 1, worker, workers, &b, &e);
    for (size_t h = b; h < e; h++)
        s->K->tmm_bf16(s->out + h * LATENT, s->x + h * 128, (const uint16_t *)(s->weights + s->at) + h * 128 * LATENT,
                       128, LATENT);
}

static inline void run_kda(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(HEADS, 1, worker, workers, &b, &e);
    for (size_t h = b; h < e; h++) {
        const float *x = s->x + h * 128;
        s->K->kda_step((float *)(s->weights + s->at) + h * 128 * 128, s->out + h * 128,
                       &(k3_kda){x, x + 12288, x + 24576, x + 36864, 0.5f}, 128);
    }
}

/* One token at 8192 positions: scores of the worker's heads, softmax, weighted sum of the latents. */
static inline void run_mla(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(HEADS, 6, worker, workers, &b, &e);
    const float *cache = (const float *)(s->weights + s->at);
    float *score = s->out + b * POSITIONS, *sum = s->out + HEADS * POSITIONS + b * LATENT;
    if (e == b)
        return;
    const k3_weights keys = {.data = cache, .rows = POSITIONS, .cols = KEY};
    s->K->mm_f32(score, POSITIONS, &keys, &(k3_vectors){s->x + b * KEY, e - b, KEY}, &s->work[worker]);
    for (size_t h = 0; h < e - b; h++) {
        float *p = score + h * POSITIONS;
        s->K->scale(p, 0.07216878f, POSITIONS);
        float total = s->K->exp_sum(p, POSITIONS, s->K->max(p, POSITIONS));
        s->K->scale(p, 1 / total, POSITIONS);
    }
    memset(sum, 0, (e - b) * LATENT * sizeof *sum);
    s->K->tmm_f32_multi(sum, LATENT, &(k3_vectors){score, e - b, POSITIONS}, &(k3_vectors){cache, POSITIONS, KEY}, LATENT);
}

static inline void run_pv(void *arg, int worker, int workers)
{
    scene *s = arg;
    size_t b, e;
    k3_share(HEADS, 6, worker, workers, &b, &e);
    if (e > b)
        s->K->tmm_f32_multi(s->out + b * LATENT, LATENT, &(k3_vectors){s->x + b * POSITIONS, e - b, POSITIONS},
                            &(k3_vectors){(const float *)(s->weights + s->at), POSITIONS, KEY}, LATENT);
}

/* Vectors of n floats in cache; the worker takes its share. */
#define VECTOR_RUN(name, call)                                                                                       \
    static inline void name(void *arg, int worker, int workers)                                                      \
    {                                                                                                                \
        scene *s = arg;                                                                                              \
        size_t b, e;                                                                                                 \
        k3_share(s->n, 128, worker, workers, &b, &e);                                                                \
        float *out = s->out + b, *x = s->x + b, *y = s->x + s->n + b;                                                \
        size_t n = e - b;                                                                                            \
        (void)y;                                                                                                     \
        if (n)                                                                                                       \
            call;                                                                                                    \
    }
VECTOR_RUN(run_situ, s->K->situ(out, x, y, n, 4, 25))
VECTOR_RUN(run_sigmoid, s->K->sigmoid(out, x, n))
VECTOR_RUN(run_exp, s->K->exp(out, x, n))
VECTOR_RUN(run_decay, s->K->decay(out, x, y, n, 1.5f, -5))
VECTOR_RUN(run_conv, s->K->conv_silu(out, x, y, n, 4, 1))

/* These belong to one worker. */
static inline void run_rmsnorm(void *arg, int worker, int workers)
{
    scene *s = arg;
    (void)workers;
    if (worker == 0)
        s->K->rmsnorm(s->out, s->x, s->x + s->n, s->n, 1e-5f);
}

static inline void run_topk(void *arg, int worker, int workers)
{
    scene *s = arg;
    (void)workers;
    uint32_t index[16];
    if (worker == 0) {
        k3_topk(s->x, s->n, 16, index);
        s->out[0] = (float)index[0];
    }
}

#include "layers.h"

#define MM(rows, n, T, size) rows, n, T, (double)(rows) * (n) * (size), 2.0 * (rows) * (n) * (T)

#define COMPACT_BYTES 1.4005 /* bytes a Gaussian weight */
static const bench benches[] = {
    {"mm_bf16", "q_proj 12288x7168", MM(12288, 7168, 1, 2), READ, run_bf16},
    {"mm_bf16", "o_proj 7168x12288", MM(7168, 12288, 1, 2), READ, run_bf16},
    {"mm_bf16", "router 896x7168", MM(896, 7168, 1, 2), READ, run_bf16},
    {"mm_bf16", "q_proj, 4 tokens", MM(12288, 7168, 4, 2), READ, run_bf16},
    {"mm_bf16", "q_proj, 32 tokens", MM(12288, 7168, 32, 2), READ, run_bf16},
    {"mm_compact", "q_proj 12288x7168", MM(12288, 7168, 1, COMPACT_BYTES), READ, run_compact},
    {"mm_compact", "q_proj, 4 tokens", MM(12288, 7168, 4, COMPACT_BYTES), READ, run_compact},
    {"mm_compact", "q_proj, 32 tokens", MM(12288, 7168, 32, COMPACT_BYTES), READ, run_compact},
    {"mm_compact", "32x7168 in cache, each", MM(32, 7168, 1, COMPACT_BYTES), CACHED, run_compact_cached},
    {"mm_mxfp4", "w1 3072x3584", MM(3072, 3584, 1, 0.53125), READ, run_mxfp4},
    {"mm_mxfp4", "w2 3584x3072", MM(3584, 3072, 1, 0.53125), READ, run_mxfp4},
    {"mm_mxfp4", "w1, 4 tokens", MM(3072, 3584, 4, 0.53125), READ, run_mxfp4},
    {"mm_mxfp4", "w1, 32 tokens", MM(3072, 3584, 32, 0.53125), READ, run_mxfp4},
    {"mm_f32", "scores 96 heads x 8192", MM(POSITIONS, KEY, HEADS, 4), READ, run_f32},
    {"tmm_f32_multi", "P.V 96 heads x 8192", POSITIONS, LATENT, HEADS, 4.0 * POSITIONS *KEY,
     2.0 * POSITIONS *LATENT *HEADS, READ, run_pv},
    {"mla attention", "96 heads, 8192 positions", POSITIONS, KEY, HEADS, 4.0 * POSITIONS *KEY,
     2.0 * POSITIONS *(LATENT + KEY) * HEADS, READ, run_mla},
    {"tmm_bf16", "absorb q, 96 x 128x512", HEADS * 256, LATENT, 1, 2.0 * HEADS * 128 * LATENT,
     2.0 * HEADS * 128 * LATENT, READ, run_absorb},
    {"kda_step", "96 heads of 128x128", HEADS * 128, 128, 1, 8.0 * HEADS * 128 * 128, 9.0 * HEADS * 128 * 128, UPDATED,
     run_kda},
    {"situ", "33792", 1, 33792, 1, 12.0 * 33792, 0, CACHED, run_situ},
    {"exp", "12288", 1, 12288, 1, 8.0 * 12288, 0, CACHED, run_exp},
    {"sigmoid", "12288", 1, 12288, 1, 8.0 * 12288, 0, CACHED, run_sigmoid},
    {"decay", "12288", 1, 12288, 1, 12.0 * 12288, 0, CACHED, run_decay},
    {"conv_silu", "36864 channels, 4 taps", 1, 36864, 1, 36.0 * 36864, 0, CACHED, run_conv},
    {"rmsnorm", "7168", 1, 7168, 1, 12.0 * 7168, 0, CACHED, run_rmsnorm},
    {"k3_layer", "KDA and MoE", 1, 1, 1, 0, 0, READ, .part = layer_kda},
    {"k3_layer", "MLA and MoE, token 8192", 1, 1, 1, 0, 0, READ, .part = layer_mla},
    {"k3_layer", "its MoE", 1, 1, 1, 0, 0, READ, .part = layer_moe},
    {"k3_layer", "its KDA recurrence", 1, 1, 1, 8.0 * HEADS * 128 * 128, 9.0 * HEADS * 128 * 128, UPDATED,
     .part = layer_recurrence},
    {"k3_layer", "its attention, token 8192", 1, 1, 1, 4.0 * POSITIONS *KEY + 2.0 * HEADS * 256 * LATENT,
     2.0 * POSITIONS *(LATENT + KEY) * HEADS, READ, .part = layer_attention},
    {"k3_topk", "16 of 896", 1, 896, 1, 4.0 * 896, 0, CACHED, run_topk},
};
enum { BENCHES = sizeof benches / sizeof *benches };

#endif
