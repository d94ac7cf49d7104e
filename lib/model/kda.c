/* Kimi Delta Attention: a gated delta rule over one D x D matrix a head. */
#include "pass.h"

#include <math.h>
#include <string.h>

/* q, k or v of one head: the convolution over the carried history and the new rows, then SiLU. */
static void convolve(k3_model *m, const float *rows, float *history, const float *w, size_t n, size_t head, float *in,
                     float *out)
{
    size_t D = m->c->kda_head_dim, W = m->c->kda_width, keep = m->c->conv_kernel - 1;
    for (size_t i = 0; i < keep; i++)
        memcpy(in + i * D, history + i * W + head * D, D * sizeof *in);
    for (size_t t = 0; t < n; t++)
        memcpy(in + (keep + t) * D, rows + t * W + head * D, D * sizeof *in);
    m->k->conv_silu(out, in, w + head * D * (keep + 1), D, keep + 1, n);
    for (size_t i = 0; i < keep; i++)
        memcpy(history + i * W + head * D, in + (n + i) * D, D * sizeof *in);
}

/* One head over the tokens of one span, in token order. */
static void head_span(k3_model *m, int layer, const k3_span *span, size_t first, size_t head, float *scratch)
{
    const k3_config *c = m->c;
    size_t D = c->kda_head_dim, W = c->kda_width, keep = c->conv_kernel - 1, n = span->n;
    struct layer_state *st = &span->state->layer[layer];
    struct kda_buf *b = &m->kda;
    float *in = scratch, *q = in + (keep + n) * D, *k = q + n * D, *v = k + n * D, *alpha = v + n * D;
    float *S = st->S + head * D * D;
    float a = m->vec[K3_T_A_LOG][head]; /* already exp(A_log) */
    float scale = 1 / sqrtf((float)D);

    convolve(m, b->q + first * W, st->history, m->vec[K3_T_Q_CONV], n, head, in, q);
    convolve(m, b->k + first * W, st->history + keep * W, m->vec[K3_T_K_CONV], n, head, in, k);
    convolve(m, b->v + first * W, st->history + 2 * keep * W, m->vec[K3_T_V_CONV], n, head, in, v);
    for (size_t t = 0; t < n; t++) {
        size_t at = (first + t) * W + head * D;
        float *o = b->o + at;
        m->k->l2norm(q + t * D, q + t * D, D, 1e-6f, scale);
        m->k->l2norm(k + t * D, k + t * D, D, 1e-6f, 1);
        m->k->decay(alpha, b->z + at, m->vec[K3_T_DT_BIAS] + head * D, D, a, (float)c->gate_lower_bound);
        m->k->kda_step(S, q + t * D, k + t * D, v + t * D, alpha, b->beta[(first + t) * c->kda_heads + head], o, D);
        m->k->rmsnorm(o, o, m->vec[K3_T_O_NORM], D, (float)c->eps);
        m->k->mul_sigmoid(o, b->g + at, D);
    }
}

static void heads(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    int layer = *(int *)arg;
    for (size_t head = begin; head < end; head++) {
        size_t first = 0;
        for (size_t i = 0; i < m->nspans; i++) {
            head_span(m, layer, &m->spans[i], first, head, m->worker[worker]);
            first += m->spans[i].n;
        }
    }
}

int kda_block(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    const k3_config *c = m->c;
    struct kda_buf *b = &m->kda;
    size_t T = m->tokens, d = c->hidden, W = c->kda_width, D = c->kda_head_dim, H = c->kda_heads;
    int status;
    if ((status = pass_matrix(m, src, layer, K3_T_Q, x, d, T, b->q, W, err)) ||
        (status = pass_matrix(m, src, layer, K3_T_K, x, d, T, b->k, W, err)) ||
        (status = pass_matrix(m, src, layer, K3_T_V, x, d, T, b->v, W, err)) ||
        (status = pass_matrix(m, src, layer, K3_T_F_A, x, d, T, b->fa, D, err)) ||
        (status = pass_matrix(m, src, layer, K3_T_F_B, b->fa, D, T, b->z, W, err)) ||
        (status = pass_matrix(m, src, layer, K3_T_BETA, x, d, T, b->beta, H, err)) ||
        (status = pass_matrix(m, src, layer, K3_T_G, x, d, T, b->g, W, err)))
        return status;
    m->k->sigmoid(b->beta, b->beta, T * H);
    m->k->exp(m->vec[K3_T_A_LOG], m->vec[K3_T_A_LOG], H);
    for (size_t i = 0; i < m->nspans; i++)
        if ((status = state_enter(m->spans[i].state, layer, err)))
            return status;
    pass_parallel(m, H, 1, heads, &layer);
    for (size_t i = 0; i < m->nspans; i++)
        state_leave(m->spans[i].state, layer);
    return pass_matrix(m, src, layer, K3_T_O, b->o, W, T, out, d, err);
}
