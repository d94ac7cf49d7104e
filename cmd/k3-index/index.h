/* SPDX-License-Identifier: Apache-2.0 */
/* index.h - shared by the verbs of k3-index. */
#ifndef K3_INDEX_CMD_H
#define K3_INDEX_CMD_H

#include "k3_store.h"

#include <jansson.h>

enum { MAX_DEPTHS = 16 };

typedef struct index_opts {
    const char *model;
    const char *index_file; /* NULL: MODEL/k3.index */
    const char *sums_file;  /* NULL: MODEL/k3.sums */
    const char *sizes_file;
    const char *operand;    /* PATTERN, NAME or FILE, or NULL */
    int threads;            /* 0: the verb's default */
    bool json, decode, write_sums;
    uint64_t read_size;     /* probe: bytes of a read, 0: an expert's */
    uint32_t depths[MAX_DEPTHS]; /* probe: reads in flight */
    int ndepths;
    double seconds;         /* probe: for each depth */
    bool in_order;          /* probe: as a trunk is read */
    bool huge;              /* probe: read into huge pages */
} index_opts;

int index_build(const index_opts *o, k3_err *err);
int index_ls(const index_opts *o, k3_err *err);
int index_show(const index_opts *o, k3_err *err);
int index_cat(const index_opts *o, k3_err *err);
int index_census(const index_opts *o, k3_err *err);
int index_check(const index_opts *o, k3_err *err);
int index_verify(const index_opts *o, k3_err *err);
int index_config(const index_opts *o, k3_err *err);
int index_probe(const index_opts *o, k3_err *err);

/* ---- output --------------------------------------------------------------- */

/* Text from a file, control characters as \n, \t, \xHH. */
void put_text(const char *text);
/* "[3072,1792]" */
void put_shape(const uint64_t *shape, uint64_t rank);
json_t *json_shape(const uint64_t *shape, uint64_t rank);
/* Prints and frees v, one line. K3_ESYS if v is NULL (no memory). */
int put_json(json_t *v, k3_err *err);
/* "497,220" in buf (at least 32 bytes); returns buf. */
char *with_commas(char *buf, uint64_t n);
/* A list of problems as an array of {status, file, tensor, offset, text}. */
json_t *json_problems(const k3_err *list, size_t n);

/* The entry of a full name or of one without `language_model.`; else K3_EDATA. */
int find_entry(const k3_index *ix, const char *name, k3_entry *e, k3_err *err);

/* ---- values ------------------------------------------------------------------ */

float bf16_value(uint16_t bits);
float f16_value(uint16_t bits);
/* One row of MXFP4: `packed` has cols / 2 bytes, `scale` cols / 32. */
void mxfp4_row(const uint8_t *packed, const uint8_t *scale, uint64_t cols, float *out);

#endif
