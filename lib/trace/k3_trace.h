/* SPDX-License-Identifier: Apache-2.0 */
/* k3_trace.h - the .k3t trace, which records the experts that every layer chose (k3-trace(5)).
 *
 * A trace is a sequence of steps. A step is one pass through the layers by one
 * or more rows, each a position of a sequence; every layer that has experts
 * records rows * k choices, row by row, in router order. Layers and experts are
 * numbered as in k3_cache.h.
 */
#ifndef K3_TRACE_H
#define K3_TRACE_H

#include "k3_base.h"
#include "k3_cache.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { K3_PHASE_PREFILL, K3_PHASE_DECODE, K3_PHASE_DRAFT, K3_PHASE_COUNT };

enum { K3_TRACE_SOURCE = 112, K3_TRACE_MAX_ROWS = 65536, K3_TRACE_MAX_CHOICES = 1 << 20 };

typedef struct k3_trace_row {
    uint64_t position; /* below 2^48 */
    uint32_t sequence;
    uint32_t phase;    /* K3_PHASE_* */
} k3_trace_row;

typedef struct k3_trace_header {
    k3_shape shape;
    uint64_t expert_bytes;         /* of one expert, > 0 */
    k3_fingerprint fingerprint;    /* of the model; 0, 0 if not known */
    bool weights;                  /* choices carry the router's weights */
    bool residency;                /* choices say whether the expert was resident */
    int policy;                    /* K3_POLICY_* of the run that was recorded, or -1 */
    uint32_t slots;                /* of its cache */
    char source[K3_TRACE_SOURCE];  /* what wrote it: one line of text, NUL-terminated */
} k3_trace_header;

const char *k3_phase_name(uint32_t phase); /* "prefill", "decode", "draft" */
int k3_phase(const char *name);            /* or -1 */

/* K3_EUSAGE, naming the field, for a header that no trace can have. */
int k3_trace_check_header(const k3_trace_header *h, k3_err *err);

typedef struct k3_trace_writer k3_trace_writer;

/* Starts a trace. `path` appears when k3_trace_close succeeds and not before;
 * "-" is standard output, and a pipe is written as frames fill (about 65,000
 * choices, or k3_trace_flush). With `append` an existing trace at `path` is
 * carried over first, its sequences keeping their numbers and the new ones
 * counting on from them; it must have the same shape, expert size, model and
 * options (K3_EDATA, naming what differs), and stays as it was until close.
 * A run that is killed leaves its whole frames in PATH.*.part, which is no trace
 * (it has no end) but can be salvaged. Such a file of an earlier run is named by a
 * k3_note and stays. */
int k3_trace_create(k3_trace_writer **w, const char *path, const k3_trace_header *h, bool append, k3_err *err);

/* Starts a step of one row, or of n rows (1..K3_TRACE_MAX_ROWS). A step that
 * records no layer leaves no mark. */
int k3_trace_step(k3_trace_writer *w, uint32_t sequence, uint64_t position, uint32_t phase, k3_err *err);
int k3_trace_step_rows(k3_trace_writer *w, const k3_trace_row *rows, int n, k3_err *err);

/* The choices of one layer in the current step: experts[rows][n / rows] in
 * router order, 1 <= n <= K3_TRACE_MAX_CHOICES. weights[n] if the header says
 * so, else NULL; residency[n] (0 or 1, at routing time) likewise. The arrays are
 * copied. Costs some 30 ns a choice, packing included; allocates only while frames grow. */
int k3_trace_layer(k3_trace_writer *w, int layer, const uint16_t *experts, int n, const float *weights,
                   const uint8_t *residency, k3_err *err);

/* From here on a frame ends when a layer is recorded a second or more after the
 * frame before, so that a run that is killed loses no more than that. How the
 * choices are divided into frames, and so the bytes of the file, then depend on time. */
void k3_trace_live(k3_trace_writer *w);

/* Ends the frame, so that a reader of the pipe sees everything up to here. */
int k3_trace_flush(k3_trace_writer *w, k3_err *err);

/* Writes index and end record, puts the file in place and frees, also on failure. */
int k3_trace_close(k3_trace_writer **w, k3_err *err);
/* Frees without leaving a file. NULL is fine. */
void k3_trace_abort(k3_trace_writer **w);

typedef struct k3_trace_reader k3_trace_reader;

/* One layer's choices in one step. Valid until the next call on the reader. */
typedef struct k3_trace_batch {
    uint64_t step;             /* from 0 */
    bool new_step;             /* first batch of its step */
    int rows, k, layer;
    const k3_trace_row *row;   /* [rows] */
    const uint16_t *experts;    /* [rows][k] */
    const float *weights;      /* [rows][k] or NULL */
    const uint8_t *residency;  /* [rows][k] or NULL */
} k3_trace_batch;

typedef struct k3_trace_totals {
    uint64_t frames, steps, choices;
    uint64_t bytes; /* of the file */
} k3_trace_totals;

/* Opens a trace ("-" is standard input) and reads its header. Memory is bounded
 * by the largest frame. K3_EDATA: no trace, another version, damaged; K3_ESYS. */
int k3_trace_open(k3_trace_reader **r, const char *path, k3_err *err);
const k3_trace_header *k3_trace_info(const k3_trace_reader *r);
const char *k3_trace_name(const k3_trace_reader *r); /* for messages */
/* Bytes read so far; *total: of the file, 0 if it is none. */
uint64_t k3_trace_bytes(const k3_trace_reader *r, uint64_t *total);

/* The next batch, or *b = NULL at the end. Every byte is under a checksum, and
 * the end is believed only when index, counts and end record agree and nothing
 * follows: K3_EDATA, with frame and offset, for a flipped, cut or joined file. */
int k3_trace_next(k3_trace_reader *r, const k3_trace_batch **b, k3_err *err);

/* Skips whole frames, so that k3_trace_next continues at or before `step`. Uses
 * the index where the file can seek; does nothing on a pipe. Before any k3_trace_next. */
int k3_trace_seek(k3_trace_reader *r, uint64_t step, k3_err *err);

/* Takes a trace that was cut off or cannot be read on: it ends with its last whole
 * frame. k3_trace_cut_off then tells at which byte, or -1 if the trace was whole. */
void k3_trace_salvage(k3_trace_reader *r);
int64_t k3_trace_cut_off(const k3_trace_reader *r);

/* Counts so far; of the whole trace once k3_trace_next has reached the end. */
k3_trace_totals k3_trace_count(const k3_trace_reader *r);
void k3_trace_free(k3_trace_reader *r);

#ifdef __cplusplus
}
#endif

#endif
