/* SPDX-License-Identifier: Apache-2.0 */
/* Attention residuals: a softmax mix of the snapshots and the running sum. */
#include "pass.h"

#include <math.h>
#include <string.h>

struct mix {
    float *h;
};

static void mix_tokens(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    struct mix *a = arg;
    size_t d = m->c->hidden, n = m->nsnapshots + 1;
    float eps = (float)m->c->eps;
    float *score = m->worker[worker]; /* [n] */
    for (size_t t = begin; t < end; t++) {
        float *h = a->h + t * d;
        for (size_t i = 0; i < n; i++) {
            const float *v = (i + 1 < n ? m->snapshots[i] : m->stream) + t * d;
            float ss = m->k->dot(v, v, d);
            score[i] = m->k->dot(v, m->res_weight, d) / sqrtf(ss / (float)d + eps);
        }
        float sum = m->k->exp_sum(score, n, m->k->max(score, n));
        memset(h, 0, d * sizeof *h);
        for (size_t i = 0; i < n; i++) {
            const float *v = (i + 1 < n ? m->snapshots[i] : m->stream) + t * d;
            m->k->axpy(h, score[i] / sum, v, d);
        }
    }
}

void k3_attnres_mix(k3_model *m, const float *norm, const float *proj, float *h)
{
    struct mix a = {h};
    m->k->mul(m->res_weight, norm, proj, m->c->hidden);
    k3_pass_parallel(m, m->tokens, 1, mix_tokens, &a);
}
