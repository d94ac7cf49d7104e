/* SPDX-License-Identifier: Apache-2.0 */
/* sequence.h - one line of input and what becomes of it. */
#ifndef SEQUENCE_H
#define SEQUENCE_H

#include "k3_model.h"
#include "k3_text.h"

struct sequence {
    struct sequence *next;
    uint64_t line;        /* from 0 */
    uint32_t number;      /* of the sequence in a trace */
    uint32_t sample;      /* of --samples, from 0 */
    k3_ids ids;           /* the prompt, then what was generated */
    size_t past;          /* of ids, those of earlier lines of a conversation */
    size_t prompt;        /* of ids, with the past */
    bool joined;          /* it has them */
    size_t fed;           /* of ids, with those of a loaded state */
    size_t shown;         /* of ids, from `prompt` on, written to the output */
    size_t told;          /* of ids, sent to the program of --draft-from */
    k3_state *state;      /* while it is active */
    bool done, stopped;   /* stopped: by a stop id */
    k3_bytes text;        /* score lines waiting for their turn */
    uint64_t logits_row, logits_rows; /* first row and rows of --logits */
    uint64_t scores_row, scores_rows; /* of --score-npy */
    double admitted, first_id, ended; /* seconds on the clock */
};

/* Takes `ids` over; NULL, and they are freed, if memory is out. */
struct sequence *sequence_new(uint64_t line, k3_ids ids);
/* Puts n ids, of which `fed` are fed, in front of the others. */
int sequence_precede(struct sequence *s, const uint32_t *ids, size_t n, size_t fed, k3_err *err);
void sequence_free(struct sequence *s);

#endif
