/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - what the commands of k3-trace share. */
#ifndef K3_TRACE_CMD_H
#define K3_TRACE_CMD_H

#include "k3_sim.h"

/* K3 itself, where a foreign trace does not say. */
#define K3_SHAPE_DEFAULT ((k3_shape){.layers = 93, .first = 1, .experts = 896, .topk = 16})
#define K3_EXPERT_BYTES_DEFAULT 17547264
#define K3_TRUNK_BYTES_DEFAULT 108810000000.0 /* layers 0..92 without experts */

typedef struct command {
    const char *name, *line; /* one line for the list */
    int (*run)(int argc, char **argv, k3_err *err);
} command;

int cmd_info(int argc, char **argv, k3_err *err);
int cmd_cat(int argc, char **argv, k3_err *err);
int cmd_hist(int argc, char **argv, k3_err *err);
int cmd_cut(int argc, char **argv, k3_err *err);
int cmd_merge(int argc, char **argv, k3_err *err);
int cmd_import(int argc, char **argv, k3_err *err);
int cmd_export(int argc, char **argv, k3_err *err);
int cmd_sim(int argc, char **argv, k3_err *err);
int cmd_plot(int argc, char **argv, k3_err *err);
int cmd_synth(int argc, char **argv, k3_err *err);
int cmd_verify(int argc, char **argv, k3_err *err);

/* Opens the one operand, or standard input without any. */
int open_operand(const k3_args *args, k3_trace_reader **r, k3_err *err);
/* Refuses a binary stream to a terminal, then k3_trace_create. */
int create_output(const char *path, const k3_trace_header *h, k3_trace_writer **w, k3_err *err);
/* Copies one batch. */
int copy_batch(k3_trace_writer *w, const k3_trace_batch *b, k3_err *err);

/* "N" or "A-B" or "A-" */
int parse_range(const char *text, const char *what, uint64_t *from, uint64_t *to, k3_err *err);
/* "93,1,896,16": layers, first with experts, experts, experts a position uses. */
int parse_shape(const char *text, k3_shape *shape, k3_err *err);

/* -m: shape, expert size and fingerprint of the checkpoint folder `dir` into *h; *trunk, if not NULL, is what
 * every token reads of its layers, experts left out. */
int model_header(const char *dir, k3_trace_header *h, uint64_t *trunk, k3_err *err);
/* Refuses a trace that is not of the model in `dir`. NULL checks nothing. */
int check_model(const char *dir, const k3_trace_reader *r, uint64_t *trunk, k3_err *err);

/* The fingerprint in hexadecimal, or "not known". */
const char *model_text(k3_fingerprint f, char buf[K3_FINGERPRINT_TEXT]);

#endif
