/* SPDX-License-Identifier: Apache-2.0 */
/* The workspace of a pass: one arena, carved once. */
#define _GNU_SOURCE
#include "pass.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Carves 64-byte aligned arrays out of a mapping; with base NULL it only counts. */
struct carver {
    char *base;
    uint64_t used;
};

static void *carve(struct carver *a, uint64_t count, size_t size)
{
    void *p = a->base ? a->base + a->used : NULL;
    a->used += (count * size + 63) / 64 * 64;
    return p;
}

static float *floats(struct carver *a, uint64_t count)
{
    return carve(a, count, sizeof(float));
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void carve_kda(k3_model *m, struct carver *a, uint64_t T, int threads)
{
    const k3_config *c = m->c;
    struct kda_buf *b = &m->kda;
    b->q = floats(a, T * c->kda_width);
    b->k = floats(a, T * c->kda_width);
    b->v = floats(a, T * c->kda_width);
    b->fa = floats(a, T * c->kda_head_dim);
    b->z = floats(a, T * c->kda_width);
    b->beta = floats(a, T * c->kda_heads);
    b->g = floats(a, T * c->kda_width);
    b->o = floats(a, T * c->kda_width);
    b->work = floats(a, (uint64_t)threads * (c->kda_head_dim + 3 * (c->conv_kernel - 1)) * c->kda_head_dim);
}

static void carve_mla(k3_model *m, struct carver *a, uint64_t T)
{
    const k3_config *c = m->c;
    struct mla_buf *b = &m->mla;
    b->qa = floats(a, T * c->q_lora_rank);
    b->q = floats(a, T * c->heads * (c->qk_nope + c->qk_rope));
    b->c = floats(a, T * (c->kv_lora_rank + c->qk_rope));
    b->g = floats(a, T * c->heads * c->v_dim);
    b->o = floats(a, T * c->heads * c->v_dim);
}

static void carve_mlp(k3_model *m, struct carver *a, uint64_t T)
{
    const k3_config *c = m->c;
    uint64_t width = most(c->first_moe ? c->dense_inter : 0, c->moe_layers ? c->shared_width : 0);
    m->mlp.gate = floats(a, T * width);
    m->mlp.up = floats(a, T * width);
}

static void carve_moe(k3_model *m, struct carver *a, uint64_t T)
{
    const k3_config *c = m->c;
    struct moe_buf *b = &m->moe;
    b->scores = floats(a, T * c->experts);
    b->weights = floats(a, T * c->topk);
    b->picks = carve(a, T * c->topk, sizeof *b->picks);
    b->asked = carve(a, c->experts, sizeof *b->asked);
    b->seen = carve(a, c->experts, sizeof *b->seen);
    b->tokens = carve(a, T, sizeof *b->tokens);
    b->z = floats(a, T * c->latent);
    b->zs = floats(a, T * c->latent);
    b->xs = floats(a, T * c->latent);
    b->h1 = floats(a, T * c->expert_inter);
    b->h3 = floats(a, T * c->expert_inter);
    b->hs = floats(a, T * c->expert_inter);
    b->y = floats(a, most(T, c->topk) * c->latent);
    b->sum = floats(a, T * c->latent);
}

/* Floats of scratch that one worker needs: a KDA head over T tokens, a block of
 * MLA heads, a token's biased scores and picks, or the scores of a mix. */
static uint64_t worker_floats(const k3_config *c, uint64_t T, uint64_t positions)
{
    uint64_t D = c->kda_head_dim, row = c->kv_lora_rank + c->qk_rope;
    uint64_t rows = T > K3_DRAFT_MAX ? T : K3_DRAFT_MAX, kda = (c->conv_kernel - 1 + rows) * D + 3 * rows * D + 2 * D + 64;
    uint64_t mla = HEAD_BLOCK * (positions + row + c->kv_lora_rank) + 64;
    uint64_t other = most(c->experts + c->topk, k3_snapshots_before(c, c->layers) + 1);
    return most(other, most(c->kda_layers ? kda : 0, c->mla_layers ? mla : 0));
}

static void carve_vectors(k3_model *m, struct carver *a)
{
    for (int id = 0; id < K3_TENSORS; id++)
        for (int layer = -1; layer < (int)m->c->layers; layer++) {
            k3_tensor t;
            if (k3_schema_tensor(m->c, layer, (k3_tensor_id)id, &t) && t.use == K3_USE_VECTOR) {
                m->vec[id] = floats(a, t.rows * t.cols);
                break;
            }
        }
}

static void carve_all(k3_model *m, struct carver *a, int threads)
{
    const k3_config *c = m->c;
    uint64_t T = m->max_tokens, d = c->hidden, blocks = k3_snapshots_before(c, c->layers), ends[4];
    m->stream = floats(a, T * d);
    m->h = floats(a, T * d);
    m->x = floats(a, T * d);
    m->out = floats(a, T * d);
    m->res_weight = floats(a, d);
    m->rows = carve(a, T * d, sizeof *m->rows);
    m->ids = carve(a, T, sizeof *m->ids);
    m->snapshots = carve(a, blocks, sizeof *m->snapshots);
    m->worker = carve(a, (uint64_t)threads, sizeof *m->worker);
    m->kernel = carve(a, (uint64_t)threads, sizeof *m->kernel);
    for (uint64_t i = 0; i < blocks; i++) {
        float *s = floats(a, T * d);
        if (a->base)
            m->snapshots[i] = s;
    }
    for (int i = 0; i < threads; i++) {
        float *s = floats(a, worker_floats(c, T, m->max_positions));
        void *kernel = carve(a, K3_SCRATCH_BYTES, 1);
        if (a->base) {
            m->worker[i] = s;
            m->kernel[i] = kernel;
        }
    }
    carve_vectors(m, a);
    /* Attention is over before the MLP starts; the MoE's buffers live beside the shared experts'. */
    uint64_t start = a->used;
    carve_kda(m, a, T, threads);
    ends[0] = a->used;
    a->used = start;
    carve_mla(m, a, T);
    ends[1] = a->used;
    a->used = start;
    carve_mlp(m, a, T);
    if (c->moe_layers)
        carve_moe(m, a, T);
    ends[2] = a->used;
    a->used = most(ends[0], most(ends[1], ends[2]));
}

uint64_t k3_model_bytes(const k3_config *c, int threads, size_t tokens, uint64_t positions)
{
    k3_model m = {.c = c, .max_tokens = tokens, .max_positions = positions};
    struct carver a = {0};
    carve_all(&m, &a, threads);
    return a.used;
}

int k3_model_new(k3_model **out, const k3_config *c, const k3_kernels *k, k3_pool *pool, size_t tokens,
                 uint64_t positions, k3_err *err)
{
    int threads = k3_pool_size(pool);
    uint64_t bytes = k3_model_bytes(c, threads, tokens, positions);
    *out = NULL;
    k3_model *m = calloc(1, sizeof *m);
    void *arena = m ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) : MAP_FAILED;
    if (arena == MAP_FAILED) {
        free(m);
        return k3_fail(err, K3_ESYS, "out of memory: %" PRIu64 " bytes for passes of %zu tokens", bytes, tokens);
    }
    *m = (k3_model){.c = c, .k = k, .pool = pool, .max_tokens = tokens, .max_positions = positions, .arena = arena};
    struct carver a = {.base = arena};
    carve_all(m, &a, threads);
    *out = m;
    return 0;
}

void k3_model_free(k3_model *m)
{
    if (!m)
        return;
    munmap(m->arena, k3_model_bytes(m->c, k3_pool_size(m->pool), m->max_tokens, m->max_positions));
    free(m);
}

void k3_model_hooks(k3_model *m, const k3_hooks *hooks)
{
    m->hooks = *hooks;
}
