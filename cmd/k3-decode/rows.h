/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h - an .npy file of rows whose number is known in the end. */
#ifndef ROWS_H
#define ROWS_H

#include "k3_base.h"

struct rows {
    k3_file *file;        /* NULL: not asked for */
    const char *path, *dtype;
    FILE *to;             /* the file, or a spool where it cannot be rewritten */
    uint64_t n, columns;
    size_t bytes;         /* of a row */
};
/* dtype "<f4" or "<f8"; path NULL: nothing is written. */
int rows_open(struct rows *r, const char *path, const char *dtype, uint64_t columns, k3_err *err);
int rows_add(struct rows *r, const void *rows, uint64_t n, k3_err *err);
int rows_commit(struct rows *r, k3_err *err);
void rows_abort(struct rows *r);

#endif
