/* SPDX-License-Identifier: Apache-2.0 */
/* output.h - what a sequence brings: ids to standard output, log-probabilities to a file. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include "options.h"
#include "sequence.h"

struct output {
    const struct options *o;
    k3_file *logprobs;    /* NULL: not asked for */
    bool watched;         /* standard output may be what the user reads: a terminal, or a pipe that may lead to one */
    bool wrote;           /* something was written to it */
    bool gone;            /* nobody reads standard output any more; nothing is written to it then, and that is no error */
};
int output_open(struct output *out, const struct options *o, k3_err *err);
/* Writes what has come of the sequence and is not yet written; its turn is the caller's affair. */
int output_news(struct output *out, struct sequence *s, k3_err *err);
/* Whether id lines, not events or a file called "-", go to standard output. */
bool output_in_turn(const struct output *out);
/* The last id of the sequence, at once: to --logprobs and as a JSON line (--stream-json). */
int output_id(struct output *out, const struct sequence *s, double logprob, k3_err *err);
/* Whether output_id wants to be called. */
bool output_wants_logprob(const struct output *out);
int output_commit(struct output *out, k3_err *err);
void output_abort(struct output *out);

#endif
