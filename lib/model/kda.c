/* SPDX-License-Identifier: Apache-2.0 */
/* Kimi Delta Attention: a gated delta rule over one D x D matrix a head.
 *
 * A head's tokens run in order through its state. Tokens that may be taken
 * back run through a copy, and what went into them is kept: the next pass runs
 * those that were accepted through the state itself. */
#include "pass.h"

#include <math.h>
#include <string.h>

/* What the recurrence of one span reads, rows of tokens apart by `ld`. */
struct inputs {
    const float *q, *k, *v, *z; /* [n][W] */
    const float *beta;          /* [n][kda_heads] */
    size_t ld, ld_beta, n;
};

/* The state that one head's tokens run through. */
struct head_state {
    float *S;          /* [D][D] */
    float *history[3]; /* q, k, v: [conv_kernel-1] rows apart by ld */
    size_t ld;
};

/* What one head's tokens give, rows of tokens apart by `ld`, at the head's columns; o NULL: only the state matters. */
struct outputs {
    float *o;
    const float *gate;
    size_t ld;
};

/* q, k or v (i = 0, 1, 2) of one head: the convolution over the carried history and the new rows, then SiLU.
 * rows [conv_kernel-1+n][D] is scratch. */
static void convolve(k3_model *m, const struct inputs *in, struct head_state *st, size_t head, int i, float *rows, float *out)
{
    size_t D = m->c->kda_head_dim, keep = m->c->conv_kernel - 1, n = in->n;
    const float *from = (const float *const[]){in->q, in->k, in->v}[i], *w = m->vec[K3_T_Q_CONV + i];
    for (size_t r = 0; r < keep; r++)
        memcpy(rows + r * D, st->history[i] + r * st->ld, D * sizeof *rows);
    for (size_t t = 0; t < n; t++)
        memcpy(rows + (keep + t) * D, from + t * in->ld + head * D, D * sizeof *rows);
    m->k->conv_silu(out, rows, w + head * D * (keep + 1), D, keep + 1, n);
    for (size_t r = 0; r < keep; r++)
        memcpy(st->history[i] + r * st->ld, rows + (n + r) * D, D * sizeof *rows);
}

/* One head over n tokens, in token order. */
static void run_head(k3_model *m, const struct inputs *in, struct head_state *st, size_t head, const struct outputs *to,
                     float *scratch)
{
    const k3_config *c = m->c;
    size_t D = c->kda_head_dim, keep = c->conv_kernel - 1, n = in->n;
    float *rows = scratch, *q = rows + (keep + n) * D, *k = q + n * D, *v = k + n * D, *alpha = v + n * D, *unused = alpha + D;
    float a = m->vec[K3_T_A_LOG][head]; /* already exp(A_log) */
    float scale = 1 / sqrtf((float)D);

    convolve(m, in, st, head, 0, rows, q);
    convolve(m, in, st, head, 1, rows, k);
    convolve(m, in, st, head, 2, rows, v);
    for (size_t t = 0; t < n; t++) {
        float *out = to->o ? to->o + t * to->ld : unused;
        m->k->l2norm(q + t * D, q + t * D, D, 1e-6f, scale);
        m->k->l2norm(k + t * D, k + t * D, D, 1e-6f, 1);
        m->k->decay(alpha, in->z + t * in->ld + head * D, m->vec[K3_T_DT_BIAS] + head * D, D, a, (float)c->gate_lower_bound);
        const k3_kda token = {q + t * D, k + t * D, v + t * D, alpha, in->beta[t * in->ld_beta + head]};
        m->k->kda_step(st->S, out, &token, D);
        if (!to->o)
            continue;
        m->k->rmsnorm(out, out, m->vec[K3_T_O_NORM], D, (float)c->eps);
        m->k->mul_sigmoid(out, to->gate + t * to->ld, D);
    }
}

static struct head_state stored_state(const k3_model *m, const struct layer_state *ls, size_t head)
{
    size_t D = m->c->kda_head_dim, W = m->c->kda_width, keep = m->c->conv_kernel - 1;
    struct head_state st = {.S = ls->S + head * D * D, .ld = W};
    for (size_t i = 0; i < 3; i++)
        st.history[i] = ls->history + i * keep * W + head * D;
    return st;
}

/* A copy of it in the worker's own memory. */
static struct head_state working_copy(const k3_model *m, const struct head_state *from, int worker)
{
    size_t D = m->c->kda_head_dim, keep = m->c->conv_kernel - 1;
    struct head_state st = {.S = m->kda.work + (size_t)worker * (D * D + 3 * keep * D), .ld = D};
    memcpy(st.S, from->S, D * D * sizeof *st.S);
    for (size_t i = 0; i < 3; i++) {
        st.history[i] = st.S + D * D + i * keep * D;
        for (size_t r = 0; r < keep; r++)
            memcpy(st.history[i] + r * D, from->history[i] + r * from->ld, D * sizeof(float));
    }
    return st;
}

/* Kept inputs of a tentative span. */
static struct inputs kept_inputs(const k3_model *m, const k3_state *s, int layer, size_t n)
{
    size_t W = m->c->kda_width, row = draft_row(m->c);
    const float *p = s->draft[layer];
    return (struct inputs){.q = p, .k = p + W, .v = p + 2 * W, .z = p + 3 * W, .beta = p + 4 * W, .ld = row, .ld_beta = row, .n = n};
}

static void head_span(k3_model *m, int layer, const k3_span *span, size_t first, size_t head, int worker)
{
    const k3_config *c = m->c;
    size_t W = c->kda_width, at = first * W, column = at + head * c->kda_head_dim;
    struct kda_buf *b = &m->kda;
    struct head_state st = stored_state(m, &span->state->layer[layer], head);
    struct inputs in = {.q = b->q + at, .k = b->k + at, .v = b->v + at, .z = b->z + at, .beta = b->beta + first * c->kda_heads,
                        .ld = W, .ld_beta = c->kda_heads, .n = span->n};
    if (span->state->settle) {
        struct inputs kept = kept_inputs(m, span->state, layer, span->state->settle);
        run_head(m, &kept, &st, head, &(struct outputs){0}, m->worker[worker]);
    }
    if (span->tentative)
        st = working_copy(m, &st, worker);
    run_head(m, &in, &st, head, &(struct outputs){b->o + column, b->g + column, W}, m->worker[worker]);
}

static void heads(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    int layer = *(int *)arg;
    for (size_t head = begin; head < end; head++) {
        size_t first = 0;
        for (size_t i = 0; i < m->nspans; i++) {
            head_span(m, layer, &m->spans[i], first, head, worker);
            first += m->spans[i].n;
        }
    }
}

/* What the tentative tokens' recurrences read, for the next pass. */
static void keep_inputs(k3_model *m, int layer)
{
    size_t W = m->c->kda_width, H = m->c->kda_heads, row = draft_row(m->c), first = 0;
    for (size_t i = 0; i < m->nspans; first += m->spans[i++].n)
        for (size_t t = 0; m->spans[i].tentative && t < m->spans[i].n; t++) {
            float *to = m->spans[i].state->draft[layer] + t * row;
            const float *const from[] = {m->kda.q, m->kda.k, m->kda.v, m->kda.z};
            for (size_t j = 0; j < 4; j++)
                memcpy(to + j * W, from[j] + (first + t) * W, W * sizeof *to);
            memcpy(to + 4 * W, m->kda.beta + (first + t) * H, H * sizeof *to);
        }
}

static int recur(k3_model *m, int layer, k3_err *err)
{
    int status = 0;
    size_t entered = 0;
    m->k->exp(m->vec[K3_T_A_LOG], m->vec[K3_T_A_LOG], m->c->kda_heads);
    while (entered < m->nspans && !(status = k3_state_enter(m->spans[entered].state, layer, err)))
        entered++;
    if (!status)
        k3_pass_parallel(m, m->c->kda_heads, 1, heads, &layer);
    for (size_t i = 0; i < entered; i++)
        k3_state_leave(m->spans[i].state, layer);
    keep_inputs(m, layer);
    return status;
}

int k3_kda_block(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    struct kda_buf *b = &m->kda;
    int status;
    if ((status = k3_pass_tokens(m, src, layer, K3_T_Q, x, b->q, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_K, x, b->k, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_V, x, b->v, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_F_A, x, b->fa, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_F_B, b->fa, b->z, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_BETA, x, b->beta, err)) ||
        (status = k3_pass_tokens(m, src, layer, K3_T_G, x, b->g, err)))
        return status;
    m->k->sigmoid(b->beta, b->beta, m->tokens * m->c->kda_heads);
    if ((status = recur(m, layer, err)))
        return status;
    return k3_pass_tokens(m, src, layer, K3_T_O, b->o, out, err);
}
