/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - steps put together from single choices, for import. */
#ifndef K3_TRACE_STEPS_H
#define K3_TRACE_STEPS_H

#include "trace.h"

/* The choices of one step, layer after layer. */
struct step_choices {
    struct step_layer {
        int layer;
        uint32_t at, n; /* choices[at .. at+n) */
    } *layer;
    uint16_t *choice;
    k3_trace_row *row; /* [rows], if the format names them */
    uint32_t layers, choices, rows;
    uint32_t layer_room, choice_room, row_room;
};

struct steps {
    const char *name; /* of the input */
    k3_shape shape;
    bool incremental;   /* of re-prefilled steps keep the new position only */
    k3_trace_writer *w;
    struct step_choices now, before;
    uint64_t count;           /* steps finished */
    uint64_t repeats;         /* of them, those that repeat the one before and add a position */
    uint64_t rows_in, rows_out;
    uint32_t first_rows, last_rows, sequence;
    uint64_t position;
    uint32_t layers_seen;     /* most in a step */
};

/* One choice of the current step; `offset` is its place in the input, UINT64_MAX if that has lines. */
int steps_add(struct steps *s, int layer, int expert, uint64_t offset, k3_err *err);
/* Names a row of the current step (in its first layer); without any, rows are told apart by top-k. */
int steps_row(struct steps *s, const k3_trace_row *row, k3_err *err);
/* Ends the current step and writes it. */
int steps_end(struct steps *s, k3_err *err);
void steps_free(struct steps *s);

#endif
