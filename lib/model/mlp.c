/* SPDX-License-Identifier: Apache-2.0 */
/* SiTU MLP: the dense one and the shared experts. */
#include "pass.h"

static void activate(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    (void)arg, (void)worker;
    m->k->situ(m->mlp.gate + begin, m->mlp.gate + begin, m->mlp.up + begin, end - begin, (float)m->c->beta,
               (float)m->c->linear_beta);
}

/* The three tensors and the inner width. */
struct mlp {
    k3_tensor_id gate, up, down;
    uint64_t width;
};

static int run(k3_model *m, k3_source *src, int layer, const struct mlp *p, const float *x, float *out, k3_err *err)
{
    int status;
    if ((status = k3_pass_tokens(m, src, layer, p->gate, x, m->mlp.gate, err)) ||
        (status = k3_pass_tokens(m, src, layer, p->up, x, m->mlp.up, err)))
        return status;
    k3_pass_parallel(m, m->tokens * p->width, 1024, activate, NULL);
    return k3_pass_tokens(m, src, layer, p->down, m->mlp.gate, out, err);
}

int k3_mlp_dense(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    const struct mlp p = {K3_T_DENSE_GATE, K3_T_DENSE_UP, K3_T_DENSE_DOWN, m->c->dense_inter};
    return run(m, src, layer, &p, x, out, err);
}

int k3_mlp_shared(k3_model *m, k3_source *src, int layer, const float *x, float *out, k3_err *err)
{
    const struct mlp p = {K3_T_SHARED_GATE, K3_T_SHARED_UP, K3_T_SHARED_DOWN, m->c->shared_width};
    return run(m, src, layer, &p, x, out, err);
}
