/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing an id: the largest logit, or a draw that any machine repeats.
 *
 * The draw depends on the logits, the options and the position alone: the
 * random number is a hash of seed and position, so company in a batch, resumed
 * runs and speculation cannot change it. Candidates are taken in order of
 * logit (the lower id first on ties); weights are exp((l - max) / T) by the
 * kernels, whose bits do not depend on the machine, summed in double. */
#define _GNU_SOURCE
#include "sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int sampler_init(struct sampler *s, const k3_kernels *k, const struct options *o, uint64_t vocab, k3_err *err)
{
    *s = (struct sampler){.k = k, .o = o, .vocab = vocab};
    s->order = malloc(vocab * sizeof *s->order);
    s->p = malloc(vocab * sizeof *s->p);
    if (!s->order || !s->p)
        return k3_fail(err, K3_ESYS, "out of memory for a vocabulary of %llu", (unsigned long long)vocab);
    return 0;
}

void sampler_free(struct sampler *s)
{
    free(s->order);
    free(s->p);
}

/* A double in [0, 1) from seed and position: SplitMix64's finalizer twice. */
static double uniform(uint64_t seed, uint64_t position)
{
    uint64_t z = seed;
    for (int i = 0; i < 2; i++) {
        z += UINT64_C(0x9e3779b97f4a7c15) * (i ? position + 1 : 1);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
    }
    return (double)(z >> 11) * 0x1p-53;
}

uint32_t sampler_argmax(const float *l, uint64_t vocab)
{
    uint32_t best = 0;
    for (uint64_t i = 1; i < vocab; i++)
        if (l[i] > l[best])
            best = (uint32_t)i;
    return best;
}

static int by_logit(const void *a, const void *b, void *arg)
{
    const float *logits = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (logits[x] != logits[y])
        return logits[x] < logits[y] ? 1 : -1;
    return x < y ? -1 : 1;
}

/* How many of the sorted candidates stay: --top-k, then --min-p, then --top-p. */
static size_t cut(const struct sampler *s, double *total)
{
    const struct options *o = s->o;
    size_t n = o->top_k && o->top_k < s->vocab ? o->top_k : s->vocab, kept = 0;
    double all = 0, sum = 0;
    while (n > 1 && (double)s->p[n - 1] < o->min_p * (double)s->p[0])
        n--;
    for (size_t i = 0; i < n; i++)
        all += (double)s->p[i];
    /* The fewest whose share reaches top_p. */
    while (kept < n && (!kept || sum < o->top_p * all))
        sum += (double)s->p[kept++];
    *total = sum;
    return kept;
}

uint32_t sampler_pick(struct sampler *s, const float *logits, uint64_t position, uint32_t sample)
{
    if (s->o->temperature == 0)
        return sampler_argmax(logits, s->vocab);
    for (uint64_t i = 0; i < s->vocab; i++)
        s->order[i] = (uint32_t)i;
    qsort_r(s->order, s->vocab, sizeof *s->order, by_logit, (void *)logits);
    float top = logits[s->order[0]], t = (float)s->o->temperature;
    for (uint64_t i = 0; i < s->vocab; i++)
        s->p[i] = (logits[s->order[i]] - top) / t;
    s->k->exp(s->p, s->p, s->vocab);
    double total, sum = 0;
    size_t n = cut(s, &total), i = 0;
    double u = uniform(s->o->seed + sample, position) * total;
    for (; i + 1 < n; i++) {
        sum += (double)s->p[i];
        if (u < sum)
            break;
    }
    return s->order[i];
}

double sampler_logprob(struct sampler *s, const float *logits, uint32_t id)
{
    memcpy(s->p, logits, s->vocab * sizeof *s->p);
    float top = s->k->max(s->p, s->vocab);
    return (double)logits[id] - (double)top - log((double)s->k->exp_sum(s->p, s->vocab, top));
}
