/* SPDX-License-Identifier: Apache-2.0 */
/* layer.h - shared by the verbs of k3-layer. */
#ifndef K3_LAYER_CMD_H
#define K3_LAYER_CMD_H

#include "k3_model.h"
#include "k3_store.h"

#define K3_NO_LAYER UINT64_MAX /* none was given */

typedef struct layer_opts {
    const char *model;
    const char *index_file;   /* NULL: MODEL/k3.index */
    const char *state_file;   /* or NULL */
    const char *weights_file; /* of the router, or NULL */
    const char *a, *b;        /* diff */
    char **patterns;          /* quant-error: which tensors */
    int npatterns;
    uint64_t layer;           /* 0-based, or K3_NO_LAYER */
    uint64_t rows;            /* quant-error: of each tensor; 0: all */
    bool each;                /* quant-error: a line for every row */
    uint64_t layers;          /* that ran before the head; 0: the model's */
    uint64_t chunk;           /* tokens in one pass over the weights */
    int part;                 /* k3_layer_part, or -1 for the whole layer */
    int threads;              /* 0: the default */
    double tol;               /* of the largest value; < 0: not given */
    double tol_abs;           /* < 0: not given */
    bool json;
} layer_opts;

int layer_run(const layer_opts *o, k3_err *err);
int layer_embed(const layer_opts *o, k3_err *err);
int layer_head(const layer_opts *o, k3_err *err);
int layer_diff(const layer_opts *o, k3_err *err);
int layer_quant_error(const layer_opts *o, k3_err *err);

/* ---- open.c: what the verbs that need a checkpoint have in common ---- */

typedef struct layer_bench {
    k3_index *index;
    const k3_config *c;
    const k3_kernels *kernels;
    k3_pool *pool;
    k3_source *source;
    k3_model *model;
} layer_bench;

/* Opens the index and takes the kernels. */
int bench_open(layer_bench *b, const layer_opts *o, k3_err *err);
/* Weights of the layers first .. last-1 and, if asked for, the head; a workspace for passes of up to o->chunk of
 * `tokens` tokens that reach up to `positions`. */
int bench_prepare(layer_bench *b, const layer_opts *o, uint64_t first, uint64_t last, bool head, uint64_t tokens,
                  uint64_t positions, k3_err *err);
void bench_close(layer_bench *b);

/* ---- arrays.c ---- */

/* The running sum and the snapshots before it: planes [n][tokens][hidden]. */
typedef struct layer_stream {
    k3_npy a;
    float *data;
    uint64_t n, tokens;
    size_t plane; /* elements: tokens * hidden */
} layer_stream;

/* One array from standard input, and nothing after it. */
int read_stdin(k3_npy *a, k3_err *err);
/* float32 [n, T, hidden] with n - 1 = `snapshots`, or [T, hidden] where that is 0. K3_EDATA names both shapes;
 * `who` takes it, "layer 5" or "the head". */
int read_stream(layer_stream *s, uint64_t snapshots, uint64_t hidden, const char *who, k3_err *err);
int write_stdout(const char *dtype, int ndim, const uint64_t *shape, const void *data, k3_err *err);
/* "[3, 8, 128]" in buf (at least K3_SHAPE_TEXT); returns buf. */
enum { K3_SHAPE_TEXT = 24 * K3_NPY_MAXDIM };
char *shape_text(char *buf, int ndim, const uint64_t *shape);

#endif
