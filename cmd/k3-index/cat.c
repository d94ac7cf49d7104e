/* SPDX-License-Identifier: Apache-2.0 */
/* cat: one tensor as .npy on standard output. */
#define _GNU_SOURCE
#include "index.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 4 << 20, BF16_BATCH = 2048 };

static const struct {
    const char *dtype, *npy;
} npy_types[] = {
    {"BF16", "<f4"}, {"F32", "<f4"}, {"F16", "<f2"}, {"F64", "<f8"}, {"U8", "|u1"}, {"I8", "|i1"}, {"BOOL", "|b1"},
    {"I16", "<i2"},  {"U16", "<u2"}, {"I32", "<i4"}, {"U32", "<u4"}, {"I64", "<i8"}, {"U64", "<u8"}, {NULL, NULL},
};

struct cat {
    const k3_index *ix;
    const k3_sums *sums;
    int fd;
    const char *path;
    uint32_t shard; /* that fd is of */
};

static int cat_open(struct cat *c, uint32_t shard, k3_err *err)
{
    if (c->fd >= 0 && c->shard == shard)
        return 0;
    if (c->fd >= 0)
        close(c->fd);
    c->shard = shard;
    c->path = k3_index_shard_path(c->ix, shard);
    c->fd = open(c->path, O_RDONLY | O_CLOEXEC);
    return c->fd < 0 ? k3_fail_errno(err, c->path, "cannot open") : 0;
}

static int put(const void *data, size_t n, k3_err *err)
{
    return fwrite(data, 1, n, stdout) == n ? 0 : k3_fail_write(err, "standard output");
}

static int put_bf16(const char *data, uint64_t bytes, k3_err *err)
{
    float wide[BF16_BATCH];
    int status = 0;
    for (uint64_t i = 0; i < bytes / 2 && !status; i += BF16_BATCH) {
        size_t n = bytes / 2 - i < BF16_BATCH ? (size_t)(bytes / 2 - i) : BF16_BATCH;
        for (size_t k = 0; k < n; k++) {
            uint16_t v;
            memcpy(&v, data + (i + k) * 2, 2);
            wide[k] = bf16_value(v);
        }
        status = put(wide, n * sizeof *wide, err);
    }
    return status;
}

/* Reads rows [row0, row0 + rows) and compares them with their checksums. */
static int read_rows(struct cat *c, const k3_entry *e, uint64_t row0, uint64_t rows, uint64_t row_bytes, void *buf, k3_err *err)
{
    int status = k3_pread_full(c->fd, c->path, buf, rows * row_bytes, e->at.offset + row0 * row_bytes, err);
    if (status || e->ignored)
        return status;
    if (e->id.expert >= 0)
        return k3_sums_part(c->sums, e->id.layer, (uint64_t)e->id.expert, (k3_part_id)e->id.part, buf, err);
    return k3_sums_tensor(c->sums, e->id.layer, (k3_tensor_id)e->id.tensor, row0, rows, buf, err);
}

/* How a tensor is read: in `step` rows at a time, so that each piece has checksums of its own. */
static void plan_rows(const struct cat *c, const k3_entry *e, uint64_t *rows, uint64_t *row_bytes, uint64_t *step)
{
    k3_tensor t;
    *rows = e->at.bytes / 8 + (e->at.bytes % 8 ? 1 : 0);
    *row_bytes = 8;
    *step = CHUNK / 8;
    if (e->ignored)
        return;
    if (e->id.expert >= 0) { /* a part has one checksum */
        *rows = *step = e->shape[0];
        *row_bytes = e->shape[1];
        return;
    }
    k3_schema_tensor(k3_index_config(c->ix), e->id.layer, (k3_tensor_id)e->id.tensor, &t);
    uint64_t unit = k3_sums_rows(&t);
    *rows = t.rows;
    *row_bytes = e->at.bytes / t.rows; /* of A_log all that is stored */
    *step = CHUNK / *row_bytes / unit * unit;
    if (*step < unit)
        *step = unit;
}

static int cat_plain(struct cat *c, const k3_entry *e, k3_err *err)
{
    uint64_t rows, row_bytes, step;
    int k = 0;
    while (npy_types[k].dtype && strcmp(npy_types[k].dtype, e->dtype))
        k++;
    if (!npy_types[k].dtype || e->rank > K3_NPY_MAXDIM)
        return k3_fail_at(err, K3_EUSAGE, k3_index_shard_name(c->ix, e->at.shard), e->name, -1,
                          "%s with %" PRIu64 " dimensions has no .npy form", e->dtype, e->rank);
    plan_rows(c, e, &rows, &row_bytes, &step);
    uint64_t piece = step < rows ? step : rows;
    char *buf = malloc(piece * row_bytes + 1);
    if (!buf)
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " bytes", piece * row_bytes);
    int status = cat_open(c, e->at.shard, err);
    for (uint64_t r = 0, n; r < rows && !status; r += n) {
        n = rows - r < step ? rows - r : step;
        uint64_t bytes = e->at.bytes - r * row_bytes < n * row_bytes ? e->at.bytes - r * row_bytes : n * row_bytes;
        status = bytes == n * row_bytes ? read_rows(c, e, r, n, row_bytes, buf, err)
                                        : k3_pread_full(c->fd, c->path, buf, bytes, e->at.offset + r * row_bytes, err);
        if (!status && !r) /* only now: a tensor that cannot be read leaves no header behind */
            status = k3_npy_write_header(stdout, "standard output", npy_types[k].npy, (int)e->rank, e->shape, err);
        if (!status)
            status = k ? put(buf, bytes, err) : put_bf16(buf, bytes, err);
    }
    if (!rows && !status)
        status = k3_npy_write_header(stdout, "standard output", npy_types[k].npy, (int)e->rank, e->shape, err);
    free(buf);
    return status;
}

/* The packed weights and the scales of one of an expert's three matrices, as float32. */
static int cat_decoded(struct cat *c, const k3_entry *packed, const k3_entry *scale, k3_err *err)
{
    const uint64_t rows = packed->shape[0], bytes = packed->shape[1], groups = scale->shape[1];
    const uint64_t shape[2] = {rows, 2 * bytes};
    uint8_t *w = malloc(packed->at.bytes), *s = malloc(scale->at.bytes);
    float *out = malloc(shape[1] * sizeof *out);
    int status = w && s && out ? 0 : k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " bytes", packed->at.bytes);
    if (!status)
        status = cat_open(c, packed->at.shard, err);
    if (!status)
        status = read_rows(c, packed, 0, rows, bytes, w, err);
    if (!status)
        status = cat_open(c, scale->at.shard, err);
    if (!status)
        status = read_rows(c, scale, 0, rows, groups, s, err);
    if (!status)
        status = k3_npy_write_header(stdout, "standard output", "<f4", 2, shape, err);
    for (uint64_t r = 0; r < rows && !status; r++) {
        mxfp4_row(w + r * bytes, s + r * groups, shape[1], out);
        status = put(out, shape[1] * sizeof *out, err);
    }
    free(w);
    free(s);
    free(out);
    return status;
}

/* NAME may be either part or what they have in common, `...experts.E.w1`. */
static int decode(struct cat *c, const char *name, k3_err *err)
{
    char full[2 * K3_NAME_MAX];
    k3_entry packed, scale;
    snprintf(full, sizeof full, "%.200s.weight_packed", name);
    if (!k3_index_find(c->ix, name, &packed) && (strlen(name) > 200 || !k3_index_find(c->ix, full, &packed)))
        return find_entry(c->ix, name, &packed, err);
    if (packed.ignored || packed.id.expert < 0)
        return k3_fail_at(err, K3_EUSAGE, k3_index_dir(c->ix), packed.name, -1, "--decode is for the matrices of routed experts");
    const k3_name id = packed.id;
    int first = id.part / 2 * 2; /* packed and scale follow each other */
    k3_index_find(c->ix, k3_part_name(full, id.layer, (uint64_t)id.expert, (k3_part_id)first), &packed);
    k3_index_find(c->ix, k3_part_name(full, id.layer, (uint64_t)id.expert, (k3_part_id)(first + 1)), &scale);
    return cat_decoded(c, &packed, &scale, err);
}

int index_cat(const index_opts *o, k3_err *err)
{
    struct cat c = {.fd = -1};
    k3_index *ix = NULL;
    k3_sums *sums = NULL;
    k3_entry e;
    if (isatty(1))
        return k3_fail(err, K3_EUSAGE, "standard output is a terminal; send the array to a file or a program");
    int status = k3_index_open(&ix, o->model, o->index_file, err);
    if (!status)
        status = k3_sums_open(&sums, ix, o->sums_file, err);
    c.ix = ix;
    c.sums = sums;
    if (!status && o->decode)
        status = decode(&c, o->operand, err);
    else if (!status && !(status = find_entry(ix, o->operand, &e, err)))
        status = cat_plain(&c, &e, err);
    if (c.fd >= 0)
        close(c.fd);
    k3_sums_close(sums);
    k3_index_close(ix);
    return status;
}
