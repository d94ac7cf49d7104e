/* SiTU MLP: the dense one and the shared experts. */
#include "pass.h"


static void activate(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    (void)arg, (void)worker;
    m->k->situ(m->mlp.gate + begin, m->mlp.gate + begin, m->mlp.up + begin, end - begin, (float)m->c->beta,
               (float)m->c->linear_beta);
}

int k3_mlp_block(k3_model *m, k3_source *src, int layer, k3_tensor_id gate, k3_tensor_id up, k3_tensor_id down,
              uint64_t width, const float *x, float *out, k3_err *err)
{
    size_t T = m->tokens, d = m->c->hidden;
    int status;
    if ((status = k3_pass_matrix(m, src, layer, gate, x, d, T, m->mlp.gate, width, err)) ||
        (status = k3_pass_matrix(m, src, layer, up, x, d, T, m->mlp.up, width, err)))
        return status;
    k3_pass_parallel(m, T * width, 1024, activate, NULL);
    return k3_pass_matrix(m, src, layer, down, m->mlp.gate, width, T, out, d, err);
}
