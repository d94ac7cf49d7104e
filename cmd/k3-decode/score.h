/* SPDX-License-Identifier: Apache-2.0 */
/* score.h - --score and --perplexity. */
#ifndef SCORE_H
#define SCORE_H

#include "rows.h"
#include "sample.h"
#include "sequence.h"

struct scores {
    const struct options *o;
    struct sampler *sampler;
    uint64_t n;
    double sum, squares;       /* of the negative log-likelihoods */
    struct rows npy;           /* float64 [rows][3] */
};
int scores_open(struct scores *sc, const struct options *o, struct sampler *sampler, k3_err *err);
/* Rows of logits after ids[first .. first+n) of the sequence, those that have a next id. */
int scores_add(struct scores *sc, struct sequence *s, size_t first, size_t n, const float *logits, k3_err *err);
/* Prints the perplexity if it was asked for; the file appears. */
int scores_end(struct scores *sc, k3_err *err);

#endif
