/* SPDX-License-Identifier: Apache-2.0 */
/* Gated multi-head latent attention over the latent cache.
 *
 * The key half of kv_b is folded into the query and its value half into the
 * output, so a position costs one latent row and is never expanded. */
#include "pass.h"

#include <math.h>
#include <string.h>

struct attend {
    int layer;
    const uint16_t *kv_b; /* rows of the piece: per head qk_nope key rows, v_dim value rows */
    size_t head0;         /* first head of the piece */
};

/* Appends the new rows to each span's cache: normed latent, then the shared key part as it is. */
static void append_latents(k3_model *m, int layer)
{
    size_t R = m->c->kv_lora_rank, row = R + m->c->qk_rope, first = 0;
    for (size_t i = 0; i < m->nspans; i++) {
        k3_state *st = m->spans[i].state;
        for (size_t t = 0; t < m->spans[i].n; t++) {
            float *dst = st->layer[layer].latent + (st->position + t) * row;
            const float *c = m->mla.c + (first + t) * row;
            m->k->rmsnorm(dst, c, m->vec[K3_T_KV_A_NORM], R, (float)m->c->latent_eps);
            memcpy(dst + R, c + R, m->c->qk_rope * sizeof *dst);
        }
        first += m->spans[i].n;
    }
}

/* Heads h0 .. h0+nh-1 of a token, nh <= HEAD_BLOCK, and its cache of n positions. */
struct attend_part {
    size_t token, h0, nh, n;
    const float *latent; /* [n][R + rope] */
};

/* scratch of the worker: scores [HEAD_BLOCK][max_positions], then q [HEAD_BLOCK][row], then o [HEAD_BLOCK][R]. */
static void attend_block(k3_model *m, const struct attend *a, const struct attend_part *b, int worker)
{
    const k3_config *c = m->c;
    size_t R = c->kv_lora_rank, rope = c->qk_rope, row = R + rope, nope = c->qk_nope, dv = c->v_dim, dq = nope + rope;
    size_t ld = m->max_positions, token = b->token, h0 = b->h0, nh = b->nh, n = b->n;
    const k3_work work = k3_pass_work(m, worker);
    float *score = m->worker[worker], *qc = score + HEAD_BLOCK * ld, *lat = qc + HEAD_BLOCK * row;
    float scale = 1 / sqrtf((float)dq);

    for (size_t i = 0; i < nh; i++) {
        const float *q = m->mla.q + (token * c->heads + h0 + i) * dq;
        const uint16_t *keys = a->kv_b + (h0 + i - a->head0) * (nope + dv) * R;
        m->k->tmm_bf16(qc + i * row, q, keys, nope, R);
        memcpy(qc + i * row + R, q + nope, rope * sizeof *qc);
    }
    m->k->mm_f32(score, ld, &(k3_weights){.data = b->latent, .rows = n, .cols = row}, &(k3_vectors){qc, nh, row}, &work);
    memset(lat, 0, nh * R * sizeof *lat);
    float sum[HEAD_BLOCK];
    for (size_t i = 0; i < nh; i++) {
        float *p = score + i * ld;
        m->k->scale(p, scale, n);
        sum[i] = m->k->exp_sum(p, n, m->k->max(p, n));
    }
    m->k->tmm_f32_multi(lat, R, &(k3_vectors){score, nh, ld}, &(k3_vectors){b->latent, n, row}, R);
    for (size_t i = 0; i < nh; i++) {
        const uint16_t *values = a->kv_b + ((h0 + i - a->head0) * (nope + dv) + nope) * R;
        float *o = m->mla.o + (token * c->heads + h0 + i) * dv;
        m->k->scale(lat + i * R, 1 / sum[i], R);
        m->k->mm_bf16(o, dv, &(k3_weights){.data = values, .rows = dv, .cols = R}, &(k3_vectors){lat + i * R, 1, R}, &work);
        m->k->mul_sigmoid(o, m->mla.g + (token * c->heads + h0 + i) * dv, dv);
    }
}

static void attend_heads(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    const struct attend *a = arg;
    for (size_t h = begin; h < end; h += HEAD_BLOCK) {
        size_t nh = end - h < HEAD_BLOCK ? end - h : HEAD_BLOCK, token = 0;
        for (size_t i = 0; i < m->nspans; i++) {
            const k3_state *st = m->spans[i].state;
            for (size_t t = 0; t < m->spans[i].n; t++, token++) {
                const struct attend_part b = {token, a->head0 + h, nh, st->position + t + 1, st->layer[a->layer].latent};
                attend_block(m, a, &b, worker);
            }
        }
    }
}

/* kv_b arrives in whole heads; each piece's heads attend while the next piece is read. */
static int attend_all(k3_model *m, k3_source *src, int layer, k3_err *err)
{
    size_t per_head = m->c->qk_nope + m->c->v_dim;
    for (size_t done = 0; done < m->c->heads;) {
        const k3_piece *p;
        const void *data;
        int status = k3_pass_piece(m, src, layer, K3_T_KV_B, &p, &data, err);
        if (status)
            return status;
        struct attend a = {layer, data, p->row0 / per_head};
        k3_pass_parallel(m, p->rows / per_head, 1, attend_heads, &a);
        done = a.head0 + p->rows / per_head;
        src->release(src);
    }
    return 0;
}

int k3_mla_block(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    const k3_config *c = m->c;
    struct mla_buf *b = &m->mla;
    int status;
    if ((status = k3_pass_tokens(m, src, layer, K3_T_Q_A, x, b->qa, err)))
        return status;
    k3_pass_norm(m, b->qa, c->q_lora_rank, m->vec[K3_T_Q_A_NORM], c->latent_eps, b->qa);
    if ((status = k3_pass_tokens(m, src, layer, K3_T_Q_B, b->qa, b->q, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_KV_A, x, b->c, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_G, x, b->g, err)))
        return status;
    append_latents(m, layer);
    if ((status = attend_all(m, src, layer, err)))
        return status;
    return k3_pass_tokens(m, src, layer, K3_T_O, b->o, out, err);
}
