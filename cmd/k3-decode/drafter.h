/* SPDX-License-Identifier: Apache-2.0 */
/* drafter.h - a program that proposes ids (--draft-from). It reads a request a line, LINE MOST ID..., and writes an answer
 * a line, ID...; man/k3-decode.1 has the whole protocol. Whatever it does costs time at most. */
#ifndef DRAFTER_H
#define DRAFTER_H

#include "k3_model.h"
#include "k3_text.h"

struct drafter;

/* Starts `sh -c command`; what it writes to standard error is passed on. K3_ESYS. */
int drafter_start(struct drafter **d, const char *command, uint64_t vocab, k3_err *err);

/* What follows ids[0..n) of an input line, as far as the program has said: up to `most` ids in out. *told of the ids
 * were sent to it before; the others are now, unless it still owes an answer. The wait for the answer ends after
 * `patience` seconds; one that comes later is used if the ids since then agree with it. patience < 0: ask nothing,
 * only take what has come. A program that has ended or breaks the protocol is noted on stderr, once, and left alone. */
size_t drafter_propose(struct drafter *d, uint64_t line, const uint32_t *ids, size_t n, size_t *told, size_t most,
                       double patience, uint32_t *out);

/* The line has ended: tells the program, if it was told of the line. */
void drafter_line_end(struct drafter *d, uint64_t line, size_t told);

/* False once it has ended. */
bool drafter_alive(const struct drafter *d);

struct drafter_counts {
    uint64_t asked, answered, late; /* late: answers that nobody waited for any more */
};
struct drafter_counts drafter_counts(const struct drafter *d); /* NULL: zeros */

/* Ends the program and all that it has started, within a second; NULL is fine. */
void drafter_stop(struct drafter *d);

#endif
