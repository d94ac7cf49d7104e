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

/* nh <= HEAD_BLOCK heads of one token over positions 0..n-1 of its cache.
 * scratch: scores [HEAD_BLOCK][max_positions], then q [HEAD_BLOCK][row], then o [HEAD_BLOCK][R]. */
static void attend_block(k3_model *m, const struct attend *a, const float *latent, size_t n, size_t token, size_t h0,
                         size_t nh, float *scratch)
{
    const k3_config *c = m->c;
    size_t R = c->kv_lora_rank, rope = c->qk_rope, row = R + rope, nope = c->qk_nope, dv = c->v_dim, dq = nope + rope;
    size_t ld = m->max_positions;
    float *score = scratch, *qc = score + HEAD_BLOCK * ld, *lat = qc + HEAD_BLOCK * row;
    float scale = 1 / sqrtf((float)dq);

    for (size_t i = 0; i < nh; i++) {
        const float *q = m->mla.q + (token * c->heads + h0 + i) * dq;
        const uint16_t *keys = a->kv_b + (h0 + i - a->head0) * (nope + dv) * R;
        m->k->tmm_bf16(qc + i * row, q, keys, nope, R);
        memcpy(qc + i * row + R, q + nope, rope * sizeof *qc);
    }
    m->k->mm_f32(score, ld, latent, n, row, qc, row, nh);
    memset(lat, 0, nh * R * sizeof *lat);
    float sum[HEAD_BLOCK];
    for (size_t i = 0; i < nh; i++) {
        float *p = score + i * ld;
        m->k->scale(p, scale, n);
        sum[i] = m->k->exp_sum(p, n, m->k->max(p, n));
    }
    m->k->tmm_f32_multi(lat, R, score, ld, nh, latent, n, R, row);
    for (size_t i = 0; i < nh; i++) {
        const uint16_t *values = a->kv_b + ((h0 + i - a->head0) * (nope + dv) + nope) * R;
        float *o = m->mla.o + (token * c->heads + h0 + i) * dv;
        m->k->scale(lat + i * R, 1 / sum[i], R);
        m->k->mm_bf16(o, dv, values, dv, R, lat + i * R, R, 1);
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
            for (size_t t = 0; t < m->spans[i].n; t++, token++)
                attend_block(m, a, st->layer[a->layer].latent, st->position + t + 1, token, a->head0 + h, nh,
                             m->worker[worker]);
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
    size_t T = m->tokens, d = c->hidden, row = c->kv_lora_rank + c->qk_rope, HV = c->heads * c->v_dim;
    int status;
    if ((status = k3_pass_matrix(m, src, layer, K3_T_Q_A, x, d, T, b->qa, c->q_lora_rank, err)))
        return status;
    k3_pass_norm(m, b->qa, c->q_lora_rank, m->vec[K3_T_Q_A_NORM], c->latent_eps, b->qa);
    if ((status = k3_pass_matrix(m, src, layer, K3_T_Q_B, b->qa, c->q_lora_rank, T, b->q,
                              c->heads * (c->qk_nope + c->qk_rope), err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_KV_A, x, d, T, b->c, row, err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_G, x, d, T, b->g, HV, err)))
        return status;
    append_latents(m, layer);
    if ((status = attend_all(m, src, layer, err)))
        return status;
    return k3_pass_matrix(m, src, layer, K3_T_O, b->o, HV, T, out, d, err);
}
