/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - choosing an id. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "k3_kernel.h"
#include "options.h"

struct sampler {
    const k3_kernels *k;
    const struct options *o;
    uint32_t *order;      /* [vocab] */
    float *p;             /* [vocab] */
    uint64_t vocab;
};
int sampler_init(struct sampler *s, const k3_kernels *k, const struct options *o, uint64_t vocab, k3_err *err);
void sampler_free(struct sampler *s);
/* The id that follows `position` tokens with these logits: a function of logits, options, position and the
 * number of the sample, from 0, alone. */
uint32_t sampler_pick(struct sampler *s, const float *logits, uint64_t position, uint32_t sample);
/* Natural logarithm of id's probability at temperature 1. */
double sampler_logprob(struct sampler *s, const float *logits, uint32_t id);
/* The id of the largest logit, the lowest on ties. */
uint32_t sampler_argmax(const float *logits, uint64_t vocab);

#endif
