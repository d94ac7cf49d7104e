/* SPDX-License-Identifier: Apache-2.0 */
/* Router and latent mixture of experts. */
#include "pass.h"
#include "k3_cache.h"

#include <string.h>

/* The topk largest s + bias of each token; weights from the unbiased s. */
static void pick_tokens(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    const k3_config *c = m->c;
    size_t E = c->experts, K = c->topk;
    float *biased = m->worker[worker];          /* [E] */
    uint32_t *best = (uint32_t *)(biased + E);  /* [K] */
    (void)arg;
    for (size_t t = begin; t < end; t++) {
        float *s = m->moe.scores + t * E, *w = m->moe.weights + t * K, total = 0;
        uint16_t *pick = m->moe.picks + t * K;
        m->k->sigmoid(s, s, E);
        memcpy(biased, s, E * sizeof *s);
        m->k->add(biased, m->vec[K3_T_ROUTER_BIAS], E);
        k3_topk(biased, E, K, best);
        for (size_t j = 0; j < K; j++) {
            pick[j] = (uint16_t)best[j];
            total += s[best[j]];
        }
        for (size_t j = 0; j < K; j++)
            w[j] = s[pick[j]] / (total + 1e-20f) * (float)c->routed_scale;
    }
}

int k3_moe_route(k3_model *m, k3_source *src, int layer, const float *x, k3_err *err)
{
    int status = k3_pass_tokens(m, src, layer, K3_T_ROUTER, x, m->moe.scores, err);
    if (status)
        return status;
    k3_pass_parallel(m, m->tokens, 1, pick_tokens, NULL);
    if (m->hooks.router)
        return m->hooks.router(m->hooks.arg, layer, m->moe.picks, m->moe.weights, m->tokens);
    return 0;
}

void k3_moe_guess(k3_model *m, k3_source *src, int layer, const float *x)
{
    k3_tensor t;
    k3_schema_tensor(m->c, layer, K3_T_ROUTER, &t);
    for (uint64_t row = 0; row < t.rows;) {
        const k3_piece *p;
        const void *data = src->peek(src, layer, K3_T_ROUTER, row, &p);
        if (!data)
            return;
        k3_pass_rows(m, &t, p, data, &(struct operands){x, t.cols, 1, m->moe.scores, t.rows});
        row = (uint64_t)p->row0 + p->rows;
    }
    pick_tokens(m, NULL, 0, 0, 1);
    src->expect(src, layer, m->moe.picks, m->c->topk);
}

struct expert_job {
    const k3_expert *e;
    const float *xs; /* [n][latent], split */
    size_t n;        /* tokens that use it */
    float *y;        /* [n][latent] */
};

/* Rows of one of the expert's matrices. */
static k3_weights expert_rows(const k3_expert *e, k3_part_id packed, k3_part_id scale, size_t row, size_t rows, size_t cols)
{
    return (k3_weights){e->part[packed] + row * cols / 2, e->part[scale] + row * cols / 32, rows, cols};
}

/* Inner rows [begin, end) of W1 z and W3 z, gated, laid out for the next product. */
static void expert_inner(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    struct expert_job *j = arg;
    size_t Z = m->c->latent, I = m->c->expert_inter, rows = end - begin;
    float *h1 = m->moe.h1, *h3 = m->moe.h3;
    const k3_weights w1 = expert_rows(j->e, K3_P_W1_PACKED, K3_P_W1_SCALE, begin, rows, Z);
    const k3_weights w3 = expert_rows(j->e, K3_P_W3_PACKED, K3_P_W3_SCALE, begin, rows, Z);
    const k3_vectors x = {j->xs, j->n, Z};
    const k3_work work = k3_pass_work(m, worker);
    m->k->mm_mxfp4(h1 + begin, I, &w1, &x, &work);
    m->k->mm_mxfp4(h3 + begin, I, &w3, &x, &work);
    for (size_t t = 0; t < j->n; t++) {
        float *g = h1 + t * I + begin;
        m->k->situ(g, g, h3 + t * I + begin, rows, (float)m->c->beta, (float)m->c->linear_beta);
        m->k->mxfp4_split(m->moe.hs + t * I + begin, g, rows);
    }
}

static void expert_outer(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    struct expert_job *j = arg;
    size_t Z = m->c->latent, I = m->c->expert_inter;
    const k3_weights w2 = expert_rows(j->e, K3_P_W2_PACKED, K3_P_W2_SCALE, begin, end - begin, I);
    const k3_work work = k3_pass_work(m, worker);
    m->k->mm_mxfp4(j->y + begin, Z, &w2, &(k3_vectors){m->moe.hs, j->n, I}, &work);
}

static void run_expert(k3_model *m, const k3_expert *e, const float *xs, size_t n, float *y)
{
    struct expert_job j = {e, xs, n, y};
    k3_pass_parallel(m, m->c->expert_inter, 32, expert_inner, &j);
    k3_pass_parallel(m, m->c->latent, ROW_GRAIN, expert_outer, &j);
}

/* One token: experts are multiplied as they arrive, each into its own buffer, and added in ascending number. */
static int experts_one_token(k3_model *m, k3_source *src, k3_err *err)
{
    struct moe_buf *b = &m->moe;
    size_t K = m->c->topk, Z = m->c->latent;
    for (size_t i = 0; i < K; i++) {
        k3_expert e;
        size_t slot = 0;
        int status = src->expert(src, &e, err);
        if (status)
            return status;
        m->reading = src->reading;
        while (b->picks[slot] != e.number)
            slot++;
        run_expert(m, &e, b->zs, 1, b->y + slot * Z);
        src->expert_release(src, &e);
    }
    for (int64_t last = -1, n = 0; n < (int64_t)K; n++) {
        size_t slot = K;
        for (size_t j = 0; j < K; j++)
            if (b->picks[j] > last && (slot == K || b->picks[j] < b->picks[slot]))
                slot = j;
        last = b->picks[slot];
        m->k->axpy(b->sum, b->weights[slot], b->y + slot * Z, Z);
    }
    return 0;
}

/* The tokens that use expert e into b->tokens; their weights into w. */
static size_t users(k3_model *m, uint32_t e, float *w)
{
    size_t n = 0, K = m->c->topk;
    for (size_t t = 0; t < m->tokens; t++)
        for (size_t j = 0; j < K; j++)
            if (m->moe.picks[t * K + j] == e) {
                m->moe.tokens[n] = (uint32_t)t;
                w[n++] = m->moe.weights[t * K + j];
                break;
            }
    return n;
}

/* Many tokens: experts come in ascending number, so each is added at once and none is kept. */
static int experts_many_tokens(k3_model *m, k3_source *src, size_t count, k3_err *err)
{
    struct moe_buf *b = &m->moe;
    size_t Z = m->c->latent;
    float *w = b->scores; /* no longer needed: [T] */
    for (size_t i = 0; i < count; i++) {
        k3_expert e;
        int status = src->expert(src, &e, err);
        if (status)
            return status;
        m->reading = src->reading;
        size_t n = users(m, e.number, w);
        for (size_t t = 0; t < n; t++)
            memcpy(b->xs + t * Z, b->zs + b->tokens[t] * Z, Z * sizeof *b->xs);
        run_expert(m, &e, b->xs, n, b->y);
        for (size_t t = 0; t < n; t++)
            m->k->axpy(b->sum + b->tokens[t] * Z, w[t], b->y + t * Z, Z);
        src->expert_release(src, &e);
    }
    return 0;
}

int k3_moe_block(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    const k3_config *c = m->c;
    struct moe_buf *b = &m->moe;
    size_t T = m->tokens, Z = c->latent;
    int status = k3_moe_route(m, src, layer, x, err);
    if (status)
        return status;
    memset(b->seen, 0, c->experts);
    size_t count = k3_distinct(b->seen, b->picks, T, c->topk, b->asked);
    if ((status = src->want(src, layer, b->asked, count, T > 1, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_LATENT_DOWN, x, b->z, err)) ||
        (status = k3_mlp_shared(m, src, layer, x, out, err)))
        return status;
    for (size_t t = 0; t < T; t++)
        m->k->mxfp4_split(b->zs + t * Z, b->z + t * Z, Z);
    memset(b->sum, 0, T * Z * sizeof *b->sum);
    status = T == 1 ? experts_one_token(m, src, err) : experts_many_tokens(m, src, count, err);
    if (status)
        return status;
    k3_pass_norm(m, b->sum, Z, m->vec[K3_T_EXPERT_NORM], c->eps, b->sum);
    /* The up projection goes where x no longer is needed, then onto the shared experts' output. */
    if ((status = k3_pass_tokens(m, src, layer, K3_T_LATENT_UP, b->sum, m->h, err)))
        return status;
    m->k->add(out, m->h, T * c->hidden);
    return 0;
}
