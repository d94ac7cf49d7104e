/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass: embedding, layers, head. */
#include "pass.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int k3_pass_begin(k3_model *m, const k3_span *spans, size_t nspans, k3_err *err)
{
    size_t T = 0;
    for (size_t i = 0; i < nspans; i++) {
        const k3_state *st = spans[i].state;
        if (st && st->position + spans[i].n > st->positions)
            return k3_fail(err, K3_EDATA, "a sequence of %" PRIu64 " tokens does not fit its state of %" PRIu64 " positions",
                           st->position + spans[i].n, st->positions);
        if (st && (st->draft_n || (spans[i].tentative && spans[i].n > st->draft_most)))
            return k3_fail(err, K3_ESYS, "a draft of %zu tokens where %zu are allowed and %zu not yet accepted", spans[i].n,
                           st->draft_most, st->draft_n);
        T += spans[i].n;
    }
    if (T > m->max_tokens)
        return k3_fail(err, K3_ESYS, "a pass of %zu tokens, the workspace holds %zu", T, m->max_tokens);
    m->spans = spans;
    m->nspans = nspans;
    m->tokens = T;
    m->nsnapshots = 0;
    return 0;
}

float *k3_stream(k3_model *m)
{
    return m->stream;
}

float *k3_snapshot(k3_model *m, uint64_t i)
{
    return m->snapshots[i];
}

static int embed(k3_model *m, k3_source *src, k3_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < m->nspans; i++)
        for (size_t t = 0; t < m->spans[i].n; t++) {
            uint32_t id = m->spans[i].ids[t];
            if (id >= m->c->vocab)
                return k3_fail(err, K3_EDATA, "id %" PRIu32 " is outside the vocabulary of %" PRIu64, id, m->c->vocab);
            m->ids[n++] = id;
        }
    int status = src->embed(src, m->ids, n, m->rows, err);
    if (!status)
        m->k->widen_bf16(m->stream, m->rows, n * m->c->hidden);
    return status;
}

/* h = the stream, or its mix with the snapshots. */
static const float *mixed(k3_model *m, k3_tensor_id norm, k3_tensor_id proj)
{
    if (!m->nsnapshots)
        return m->stream;
    k3_attnres_mix(m, m->vec[norm], m->vec[proj], m->h);
    return m->h;
}

static int attention(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    return m->c->is_mla[layer] ? k3_mla_block(m, src, layer, x, out, err) : k3_kda_block(m, src, layer, x, out, err);
}

static int feed_forward(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    if (k3_is_moe(m->c, (uint64_t)layer))
        return k3_moe_block(m, src, layer, x, out, err);
    return k3_mlp_dense(m, src, layer, x, out, err);
}

/* The router's input before attention is known: the mix without what attention will add, or will put in the stream's
 * place where a block begins. It has most of the experts right. */
static void look_ahead(k3_model *m, k3_source *src, int layer, bool fresh)
{
    const k3_config *c = m->c;
    if (m->tokens != 1 || !src->expect || !k3_is_moe(c, (uint64_t)layer))
        return;
    if (fresh)
        memset(m->stream, 0, c->hidden * sizeof *m->stream);
    k3_pass_norm(m, mixed(m, K3_T_MLP_RES_NORM, K3_T_MLP_RES_PROJ), c->hidden, m->vec[K3_T_MLP_NORM], c->eps, m->out);
    k3_moe_guess(m, src, layer, m->out);
}

int k3_layer(k3_model *m, k3_source *src, int layer, k3_err *err)
{
    const k3_config *c = m->c;
    size_t d = c->hidden, size = m->tokens * d;
    bool fresh = (uint64_t)layer % c->block == 0;
    m->nsnapshots = k3_snapshots_before(c, (uint64_t)layer);
    int status = k3_pass_vectors(m, src, layer, err);
    if (status)
        return status;
    k3_pass_norm(m, mixed(m, K3_T_ATTN_RES_NORM, K3_T_ATTN_RES_PROJ), d, m->vec[K3_T_ATTN_NORM], c->eps, m->x);
    if (fresh)
        memcpy(m->snapshots[m->nsnapshots++], m->stream, size * sizeof *m->stream);
    look_ahead(m, src, layer, fresh);
    if ((status = attention(m, src, layer, m->x, fresh ? m->stream : m->out, err)))
        return status;
    if (!fresh)
        m->k->add(m->stream, m->out, size);
    k3_pass_norm(m, mixed(m, K3_T_MLP_RES_NORM, K3_T_MLP_RES_PROJ), d, m->vec[K3_T_MLP_NORM], c->eps, m->x);
    if ((status = feed_forward(m, src, layer, m->x, m->out, err)))
        return status;
    m->k->add(m->stream, m->out, size);
    return m->hooks.layer ? m->hooks.layer(m->hooks.arg, layer, m->stream, m->tokens) : 0;
}

/* The rows whose logits are wanted, normed, gathered in front of m->x. */
static size_t wanted_rows(k3_model *m, const float *h)
{
    size_t first = 0, n = 0, d = m->c->hidden;
    for (size_t i = 0; i < m->nspans; first += m->spans[i++].n)
        for (size_t t = m->spans[i].n - m->spans[i].logits; t < m->spans[i].n; t++)
            m->k->rmsnorm(m->x + n++ * d, h + (first + t) * d, m->vec[K3_T_FINAL_NORM], d, (float)m->c->eps);
    return n;
}

int k3_head(k3_model *m, k3_source *src, uint64_t layers, float *logits, k3_err *err)
{
    const k3_config *c = m->c;
    m->nsnapshots = k3_snapshots_before(c, layers);
    int status = k3_pass_vectors(m, src, -1, err);
    if (status)
        return status;
    size_t n = wanted_rows(m, mixed(m, K3_T_OUT_RES_NORM, K3_T_OUT_RES_PROJ));
    if ((status = k3_pass_matrix(m, src, -1, K3_T_HEAD, &(struct operands){m->x, c->hidden, n, logits, c->vocab}, err)))
        return status;
    for (size_t i = 0; i < n * c->vocab; i++)
        if (!isfinite(logits[i]))
            return k3_fail(err, K3_EDATA, "the logit of id %zu is not finite", i % (size_t)c->vocab);
    return 0;
}

void k3_pass_end(k3_model *m)
{
    for (size_t i = 0; i < m->nspans; i++) {
        const k3_span *s = &m->spans[i];
        if (!s->state)
            continue;
        s->state->position += s->n;
        s->state->settle = 0; /* applied on the way */
        s->state->draft_n = s->tentative ? s->n : 0;
    }
}

int k3_forward(k3_model *m, k3_source *src, const k3_span *spans, size_t nspans, uint64_t layers, bool more,
               float *logits, k3_err *err)
{
    bool head = false;
    for (size_t i = 0; i < nspans; i++)
        head = head || spans[i].logits;
    int status;
    if ((status = k3_pass_begin(m, spans, nspans, err)) || (status = src->begin(src, head, more, err)) ||
        (status = embed(m, src, err)))
        return status;
    for (uint64_t l = 0; l < layers; l++)
        if ((status = k3_layer(m, src, (int)l, err)))
            return status;
    if (head && (status = k3_head(m, src, layers, logits, err)))
        return status;
    k3_pass_end(m);
    return 0;
}

int k3_part(k3_model *m, k3_source *src, int layer, k3_layer_part part, const float *x, float *out, k3_err *err)
{
    static const char *const names[] = {"attn", "mlp", "router", "moe"};
    bool moe = k3_is_moe(m->c, (uint64_t)layer);
    if ((part == K3_PART_ROUTER || part == K3_PART_MOE) && !moe)
        return k3_fail(err, K3_EUSAGE, "layer %d is dense, it has no %s part", layer, names[part]);
    int status = k3_pass_vectors(m, src, layer, err);
    if (status || part == K3_PART_ATTN)
        return status ? status : attention(m, src, layer, x, out, err);
    /* The attention's matrices come first in reading order. */
    for (int id = K3_T_Q; !status && id <= K3_T_O; id++)
        status = k3_pass_skip(m, src, layer, (k3_tensor_id)id, err);
    if (status || part == K3_PART_ROUTER)
        return status ? status : k3_moe_route(m, src, layer, x, err);
    if (part == K3_PART_MOE || !moe)
        return feed_forward(m, src, layer, x, out, err);
    if ((status = k3_pass_skip(m, src, layer, K3_T_ROUTER, err)) || (status = k3_pass_skip(m, src, layer, K3_T_LATENT_DOWN, err)))
        return status;
    return k3_mlp_shared(m, src, layer, x, out, err);
}
