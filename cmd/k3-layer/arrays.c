/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in and out, and the shapes they must have. */
#include "layer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

char *shape_text(char *buf, int ndim, const uint64_t *shape)
{
    size_t n = 0;
    buf[n++] = '[';
    for (int i = 0; i < ndim; i++)
        n += (size_t)sprintf(buf + n, i ? ", %" PRIu64 : "%" PRIu64, shape[i]);
    strcpy(buf + n, "]");
    return buf;
}

int read_stdin(k3_npy *a, k3_err *err)
{
    int status = k3_npy_read(stdin, "standard input", a, err);
    if (status)
        return status;
    if (getc(stdin) != EOF)
        status = k3_fail(err, K3_EDATA, "standard input: more bytes after the array of %" PRIu64 " values", a->count);
    else if (ferror(stdin))
        status = k3_fail_errno(err, "standard input", "cannot read");
    if (status)
        k3_npy_free(a);
    return status;
}

/* "[3, T, 128]", or "[T, 128] or [1, T, 128]" where there are no snapshots. */
static void wanted_text(char *buf, size_t size, uint64_t snapshots, uint64_t hidden)
{
    if (snapshots)
        snprintf(buf, size, "[%" PRIu64 ", T, %" PRIu64 "]: %" PRIu64 " snapshot%s, then the running sum",
                 snapshots + 1, hidden, snapshots, snapshots == 1 ? "" : "s");
    else
        snprintf(buf, size, "[T, %" PRIu64 "] or [1, T, %" PRIu64 "]", hidden, hidden);
}

int read_stream(layer_stream *s, uint64_t snapshots, uint64_t hidden, const char *who, k3_err *err)
{
    char have[K3_SHAPE_TEXT], want[160];
    k3_npy *a = &s->a;
    int status = read_stdin(a, err);
    if (status)
        return status;
    wanted_text(want, sizeof want, snapshots, hidden);
    const uint64_t *shape = a->shape;
    uint64_t n = a->ndim == 3 ? shape[0] : 1;
    if (strcmp(a->dtype, "<f4"))
        status = k3_fail(err, K3_EDATA, "standard input: dtype %s, %s takes <f4 (float32)", a->dtype, who);
    else if ((a->ndim != 2 && a->ndim != 3) || shape[a->ndim - 1] != hidden || n != snapshots + 1)
        status = k3_fail(err, K3_EDATA, "standard input: shape %s, %s takes %s", shape_text(have, a->ndim, shape),
                         who, want);
    if (status) {
        k3_npy_free(a);
        return status;
    }
    s->data = a->data;
    s->n = n;
    s->tokens = shape[a->ndim - 2];
    s->plane = s->tokens * hidden;
    return 0;
}

int write_stdout(const char *dtype, int ndim, const uint64_t *shape, const void *data, k3_err *err)
{
    int status = k3_npy_write(stdout, "standard output", dtype, ndim, shape, data, err);
    if (!status && fflush(stdout))
        status = k3_fail_write(err, "standard output");
    return status;
}
