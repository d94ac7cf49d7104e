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

/* q, k or v of one head: the convolution over the carried history and the new rows, then SiLU. */
static void convolve(k3_model *m, const float *rows, size_t ld, float *history, size_t ld_history, const float *w, size_t n,
                     size_t head, float *in, float *out)
{
    size_t D = m->c->kda_head_dim, keep = m->c->conv_kernel - 1;
    for (size_t i = 0; i < keep; i++)
        memcpy(in + i * D, history + i * ld_history, D * sizeof *in);
    for (size_t t = 0; t < n; t++)
        memcpy(in + (keep + t) * D, rows + t * ld + head * D, D * sizeof *in);
    m->k->conv_silu(out, in, w + head * D * (keep + 1), D, keep + 1, n);
    for (size_t i = 0; i < keep; i++)
        memcpy(history + i * ld_history, in + (n + i) * D, D * sizeof *in);
}

/* One head over n tokens, in token order. o and gate [n][ld] at the head's columns; o NULL: only the state matters. */
static void run_head(k3_model *m, const struct inputs *in, struct head_state *st, size_t head, float *o, const float *gate,
                     size_t ld_o, float *scratch)
{
    const k3_config *c = m->c;
    size_t D = c->kda_head_dim, keep = c->conv_kernel - 1, n = in->n;
    float *rows = scratch, *q = rows + (keep + n) * D, *k = q + n * D, *v = k + n * D, *alpha = v + n * D, *unused = alpha + D;
    float a = m->vec[K3_T_A_LOG][head]; /* already exp(A_log) */
    float scale = 1 / sqrtf((float)D);

    convolve(m, in->q, in->ld, st->history[0], st->ld, m->vec[K3_T_Q_CONV], n, head, rows, q);
    convolve(m, in->k, in->ld, st->history[1], st->ld, m->vec[K3_T_K_CONV], n, head, rows, k);
    convolve(m, in->v, in->ld, st->history[2], st->ld, m->vec[K3_T_V_CONV], n, head, rows, v);
    for (size_t t = 0; t < n; t++) {
        float *out = o ? o + t * ld_o : unused;
        m->k->l2norm(q + t * D, q + t * D, D, 1e-6f, scale);
        m->k->l2norm(k + t * D, k + t * D, D, 1e-6f, 1);
        m->k->decay(alpha, in->z + t * in->ld + head * D, m->vec[K3_T_DT_BIAS] + head * D, D, a, (float)c->gate_lower_bound);
        m->k->kda_step(st->S, q + t * D, k + t * D, v + t * D, alpha, in->beta[t * in->ld_beta + head], out, D);
        if (!o)
            continue;
        m->k->rmsnorm(out, out, m->vec[K3_T_O_NORM], D, (float)c->eps);
        m->k->mul_sigmoid(out, gate + t * ld_o, D);
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
        run_head(m, &kept, &st, head, NULL, NULL, 0, m->worker[worker]);
    }
    if (span->tentative)
        st = working_copy(m, &st, worker);
    run_head(m, &in, &st, head, b->o + column, b->g + column, W, m->worker[worker]);
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
    const k3_config *c = m->c;
    struct kda_buf *b = &m->kda;
    size_t T = m->tokens, d = c->hidden, W = c->kda_width, D = c->kda_head_dim, H = c->kda_heads;
    int status;
    if ((status = k3_pass_matrix(m, src, layer, K3_T_Q, x, d, T, b->q, W, err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_K, x, d, T, b->k, W, err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_V, x, d, T, b->v, W, err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_F_A, x, d, T, b->fa, D, err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_F_B, b->fa, D, T, b->z, W, err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_BETA, x, d, T, b->beta, H, err)) ||
        (status = k3_pass_matrix(m, src, layer, K3_T_G, x, d, T, b->g, W, err)))
        return status;
    m->k->sigmoid(b->beta, b->beta, T * H);
    if ((status = recur(m, layer, err)))
        return status;
    return k3_pass_matrix(m, src, layer, K3_T_O, b->o, W, T, out, d, err);
}
