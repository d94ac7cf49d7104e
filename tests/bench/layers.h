/* SPDX-License-Identifier: Apache-2.0 */
/* layers.h - one token through whole layers of the released width by lib/model, all weights in memory. */
#ifndef LAYERS_H
#define LAYERS_H

#include "pass.h" /* the position of a state without feeding 8191 tokens */

enum { KDA_LAYER = 1, MLA_LAYER = 3, LAYERS = 4 };

/* A source whose pieces and experts lie one after the other in the scene's weights. */
typedef struct {
    k3_source source;
    scene *s;
    k3_order *order[LAYERS];
    size_t layer, next, at; /* piece, and its place in memory */
    const uint16_t *asked;
    size_t given, expert_bytes, scale_bytes;
    size_t begin[K3_TENSORS];                    /* places in memory */
    double begun[K3_TENSORS], ended[K3_TENSORS]; /* on the clock: first piece taken, last one released */
} held;

typedef struct layers {
    k3_config c;
    k3_model *model;
    k3_state *state;
    held memory;
    double bytes; /* of weights in the part last run */
} layers;

static const k3_config released = {
    .hidden = 7168,
    .layers = LAYERS,
    .vocab = 163840,
    .dense_inter = 33792,
    .first_moe = 1,
    .heads = HEADS,
    .q_lora_rank = 1536,
    .kv_lora_rank = LATENT,
    .qk_nope = 128,
    .qk_rope = KEY - LATENT,
    .v_dim = 128,
    .experts = 896,
    .topk = 16,
    .shared = 2,
    .expert_inter = 3072,
    .latent = 3584,
    .block = 12,
    .max_positions = 1 << 20,
    .kda_heads = HEADS,
    .kda_head_dim = 128,
    .conv_kernel = 4,
    .eps = 1e-5,
    .latent_eps = 1e-5,
    .routed_scale = 1,
    .beta = 4,
    .linear_beta = 25,
    .gate_lower_bound = -5,
    .kda_width = HEADS * 128,
    .shared_width = 2 * 3072,
    .kda_layers = LAYERS - 1,
    .mla_layers = 1,
    .moe_layers = LAYERS - 1,
    .is_mla = {[MLA_LAYER] = 1},
};

static inline int memory_next(k3_source *source, const k3_piece **piece, const void **data, k3_err *err)
{
    held *m = (held *)source;
    const k3_piece *p = *piece = &m->order[m->layer]->pieces[m->next++];
    (void)err;
    *data = m->s->weights + m->at;
    if (!p->row0) {
        m->begin[p->tensor] = m->at;
        m->begun[p->tensor] = k3_now();
    }
    m->at += ((size_t)p->bytes + 63) / 64 * 64;
    return 0;
}

static inline void memory_release(k3_source *source)
{
    held *m = (held *)source;
    m->ended[m->order[m->layer]->pieces[m->next - 1].tensor] = k3_now();
}

static inline int memory_want(k3_source *source, int layer, const uint16_t *experts, size_t n, bool ascending,
                              k3_err *err)
{
    held *m = (held *)source;
    (void)layer, (void)n, (void)ascending, (void)err;
    m->asked = experts;
    m->given = 0;
    return 0;
}

static inline int memory_expert(k3_source *source, k3_expert *e, k3_err *err)
{
    held *m = (held *)source;
    const uint8_t *packed = (uint8_t *)m->s->weights + BIG - (m->given + 1) * m->expert_bytes;
    const uint8_t *scale = m->s->scale + m->given * m->scale_bytes;
    (void)err;
    e->number = m->asked[m->given++];
    for (int part = 0; part < K3_PARTS; part++) {
        k3_tensor t;
        k3_schema_part(&m->s->layers->c, (k3_part_id)part, &t);
        const bool scales = part == K3_P_W1_SCALE || part == K3_P_W2_SCALE || part == K3_P_W3_SCALE;
        e->part[part] = scales ? scale : packed;
        *(scales ? &scale : &packed) += t.bytes;
    }
    return 0;
}

static inline void memory_expert_release(k3_source *source, k3_expert *e)
{
    (void)source, (void)e;
}

static inline int layers_open(scene *s, k3_pool *pool, k3_err *err)
{
    layers *l = s->layers = calloc(1, sizeof *l);
    int status = l ? 0 : k3_fail(err, K3_ESYS, "out of memory");
    if (status)
        return status;
    l->c = released;
    held *m = &l->memory;
    *m = (held){.source = {.reading = k3_reading_usual(),
                           .next = memory_next,
                           .release = memory_release,
                           .want = memory_want,
                           .expert = memory_expert,
                           .expert_release = memory_expert_release},
                .s = s};
    m->scale_bytes = 3 * l->c.expert_inter * l->c.latent / 32;
    m->expert_bytes = k3_expert_bytes(&l->c) - m->scale_bytes;
    for (uint64_t i = 0; i < LAYERS && !status; i++)
        status = k3_order_new(&m->order[i], &l->c, i, i + 1, false, 16 << 20, err);
    if (status || (status = k3_model_new(&l->model, &l->c, s->K, pool, 1, POSITIONS, err)) ||
        (status = k3_state_new(&l->state, &l->c, LAYERS, POSITIONS, err)))
        return status;
    memcpy(k3_snapshot(l->model, 0), s->x, l->c.hidden * sizeof(float));
    memcpy(l->state->layer[MLA_LAYER].latent, s->x, (size_t)POSITIONS * KEY * sizeof(float));
    return 0;
}

static inline void layers_close(scene *s)
{
    layers *l = s->layers;
    for (int i = 0; i < LAYERS; i++)
        k3_order_free(l->memory.order[i]);
    k3_state_free(l->state);
    k3_model_free(l->model);
    free(l);
}

/* Seconds that token `position` + 1 takes in a layer. */
static inline double layer_run(scene *s, int layer, uint64_t position)
{
    layers *l = s->layers;
    const k3_span span = {.state = l->state, .n = 1};
    k3_err err = {0};
    l->memory.layer = (size_t)layer;
    l->memory.next = l->memory.at = 0;
    l->state->position = position;
    memcpy(k3_stream(l->model), s->x, l->c.hidden * sizeof(float));
    double begin = k3_now();
    if (k3_pass_begin(l->model, &span, 1, &err) || k3_layer(l->model, &l->memory.source, layer, &err))
        exit(k3_report_error(&err));
    return k3_now() - begin;
}

static inline double experts_bytes(const layers *l)
{
    return (double)(l->c.topk * k3_expert_bytes(&l->c));
}

static inline double layer_kda(scene *s)
{
    double seconds = layer_run(s, KDA_LAYER, 0);
    s->layers->bytes = (double)s->layers->memory.at + experts_bytes(s->layers);
    return seconds;
}

static inline double layer_mla(scene *s)
{
    double seconds = layer_run(s, MLA_LAYER, POSITIONS - 1);
    s->layers->bytes = (double)s->layers->memory.at + 4.0 * POSITIONS * KEY + experts_bytes(s->layers);
    return seconds;
}

/* Between the products before and after it. */
static inline double layer_recurrence(scene *s)
{
    layer_run(s, KDA_LAYER, 0);
    return s->layers->memory.begun[K3_T_O] - s->layers->memory.ended[K3_T_G];
}

/* The same of MLA: with kv_b, which is read there. */
static inline double layer_attention(scene *s)
{
    layer_run(s, MLA_LAYER, POSITIONS - 1);
    return s->layers->memory.begun[K3_T_O] - s->layers->memory.ended[K3_T_G];
}

/* Router, experts, shared experts. */
static inline double layer_moe(scene *s)
{
    double end = k3_now() + layer_run(s, KDA_LAYER, 0);
    const held *m = &s->layers->memory;
    s->layers->bytes = (double)(m->at - m->begin[K3_T_ROUTER]) + experts_bytes(s->layers);
    return end - m->ended[K3_T_O];
}

#endif
