/* SPDX-License-Identifier: Apache-2.0 */
/* --score and --perplexity: how likely the model finds given ids. */
#include "score.h"

#include <inttypes.h>
#include <math.h>

int scores_open(struct scores *s, const struct options *o, struct sampler *sampler, k3_err *err)
{
    *s = (struct scores){.o = o, .sampler = sampler};
    return rows_open(&s->npy, o->score_npy, "<f8", 3, err);
}

/* How many ids come before `id` in order of logit, lower ids first on ties; 0 is the best. */
static uint64_t rank_of(const float *logits, uint64_t vocab, uint32_t id)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < vocab; i++)
        n += logits[i] > logits[id] || (logits[i] == logits[id] && i < id);
    return n;
}

static int add_row(struct scores *sc, struct sequence *s, size_t at, const float *logits, k3_err *err)
{
    uint64_t vocab = sc->sampler->vocab;
    uint32_t id = s->ids.id[at];
    double lp = sampler_logprob(sc->sampler, logits, id);
    uint64_t rank = rank_of(logits, vocab, id), best = sampler_argmax(logits, vocab);
    char line[128];
    s->scores_row = s->scores_rows++ ? s->scores_row : sc->n;
    sc->n++;
    sc->sum -= lp;
    sc->squares += lp * lp;
    int status = rows_add(&sc->npy, (double[]){lp, (double)rank, (double)best}, 1, err);
    if (status)
        return status;
    if (!sc->o->score)
        return 0;
    int n = snprintf(line, sizeof line, "%" PRIu64 "\t%zu\t%" PRIu32 "\t%.6f\t%" PRIu64 "\t%" PRIu64 "\n", s->line + 1, at, id,
                     lp, rank, best);
    return k3_bytes_add(&s->text, line, (size_t)n, err);
}

int scores_add(struct scores *sc, struct sequence *s, size_t first, size_t n, const float *logits, k3_err *err)
{
    int status = 0;
    for (size_t i = 0; i < n && first + i + 1 < s->ids.n && !status; i++)
        status = add_row(sc, s, first + i + 1, logits + i * sc->sampler->vocab, err);
    return status;
}

static int print_perplexity(const struct scores *s, k3_err *err)
{
    double mean = s->n ? s->sum / (double)s->n : 0;
    double variance = s->n > 1 ? (s->squares - s->sum * mean) / (double)(s->n - 1) : 0;
    double error = s->n ? sqrt(fmax(variance, 0) / (double)s->n) : 0;
    const char *form = s->o->json ? "{\"ids\": %" PRIu64 ", \"mean_nll\": %.6f, \"standard_error\": %.6f, \"perplexity\": %.4f}\n"
                                  : "ids %" PRIu64 "\nmean_nll %.6f\nstandard_error %.6f\nperplexity %.4f\n";
    if (printf(form, s->n, mean, error, exp(mean)) < 0 || fflush(stdout))
        return k3_fail_write(err, "standard output");
    return 0;
}

int scores_end(struct scores *s, k3_err *err)
{
    int status = s->o->perplexity ? print_perplexity(s, err) : 0;
    return status ? status : rows_commit(&s->npy, err);
}
