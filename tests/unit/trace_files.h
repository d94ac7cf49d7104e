/* SPDX-License-Identifier: Apache-2.0 */
/* trace_files.h - traces that the tests write: their choices are functions of a seed, so that no copy is needed. */
#ifndef TRACE_FILES_H
#define TRACE_FILES_H

#include "../../lib/trace/format.h"
#include "temp_folder.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

static uint64_t rng;

static inline uint32_t below(uint32_t n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((rng >> 32) * n >> 32);
}

static char dir[FOLDER_MAX], file[FOLDER_MAX + 16];

static inline void setup(void)
{
    rng = 7;
    temp_folder(dir);
    snprintf(file, sizeof file, "%s/t.k3t", dir);
}

static inline void teardown(void)
{
    unlink(file);
    cr_assert_eq(rmdir(dir), 0, "a temporary was left behind");
}

static inline k3_trace_header header(bool weights, bool residency)
{
    k3_trace_header h = {.shape = {.layers = 5, .first = 1, .experts = 37, .topk = 3},
                         .expert_bytes = 1000,
                         .fingerprint = {0x1234, 0x5678},
                         .weights = weights,
                         .residency = residency,
                         .policy = K3_POLICY_LAYERS,
                         .slots = 9,
                         .source = "unit test"};
    return h;
}

struct shape_of_step {
    int rows, k;
};

static inline struct shape_of_step step_shape(int s)
{
    return (struct shape_of_step){s % 7 == 0 ? 1 + s % 5 : 1, s % 5 == 4 ? 2 : 3};
}

static inline void fill(int step, int layer, int n, int experts, uint16_t *e, float *w, uint8_t *res)
{
    rng = (uint64_t)(step * 131 + layer) / 3 + 5; /* neighbours share numbers, as real routing does */
    for (int i = 0; i < n; i++) {
        e[i] = (int32_t)below((uint32_t)experts);
        w[i] = (float)below(1000) / 977;
        res[i] = (uint8_t)below(2);
    }
}

static inline void write_trace(const char *path, const k3_trace_header *h, int steps, bool append)
{
    k3_err err = {0};
    k3_trace_writer *w;
    cr_assert_eq(k3_trace_create(&w, path, h, append, &err), 0, "%s", err.text);
    for (int s = 0; s < steps; s++) {
        struct shape_of_step shape = step_shape(s);
        k3_trace_row row[8];
        for (int r = 0; r < shape.rows; r++)
            row[r] = (k3_trace_row){.position = (uint64_t)s * 1000 + (uint64_t)r,
                                    .sequence = (uint32_t)(s % 3),
                                    .phase = (uint32_t)(s % K3_PHASE_COUNT)};
        cr_assert_eq(k3_trace_step_rows(w, row, shape.rows, &err), 0);
        for (int l = h->shape.first; l < h->shape.layers; l++) {
            uint16_t e[32];
            float weight[32];
            uint8_t res[32];
            int n = shape.rows * shape.k;
            fill(s, l, n, h->shape.experts, e, weight, res);
            cr_assert_eq(k3_trace_layer(w, l, e, n, h->weights ? weight : NULL, h->residency ? res : NULL, &err), 0,
                         "%s", err.text);
        }
    }
    cr_assert_eq(k3_trace_close(&w, &err), 0, "%s", err.text);
}

/* Reads on from step `s`; returns the steps seen. */
static inline int check_trace(k3_trace_reader *r, const k3_trace_header *h, int s, uint32_t sequence_base)
{
    k3_err err = {0};
    const k3_trace_batch *b;
    int seen = 0, layer = h->shape.layers - 1, first = s;
    while (!k3_trace_next(r, &b, &err) && b) {
        uint16_t e[32];
        float weight[32];
        uint8_t res[32];
        if (b->new_step) {
            cr_assert_eq(layer, h->shape.layers - 1, "a step was cut short");
            s = first + seen++;
            layer = h->shape.first - 1;
        }
        struct shape_of_step shape = step_shape(s);
        cr_assert_eq(b->layer, ++layer);
        cr_assert(b->rows == shape.rows && b->k == shape.k, "step %d has %d rows of %d", s, b->rows, b->k);
        fill(s, layer, b->rows * b->k, h->shape.experts, e, weight, res);
        cr_assert_arr_eq(b->experts, e, (size_t)(b->rows * b->k) * sizeof *e);
        cr_assert_eq(b->weights != NULL, h->weights);
        cr_assert(!b->weights || !memcmp(b->weights, weight, (size_t)(b->rows * b->k) * sizeof *weight));
        cr_assert(!b->residency || !memcmp(b->residency, res, (size_t)(b->rows * b->k)));
        for (int i = 0; i < b->rows; i++) {
            cr_assert_eq(b->row[i].position, (uint64_t)s * 1000 + (uint64_t)i);
            cr_assert_eq(b->row[i].sequence, (uint32_t)(s % 3) + sequence_base);
            cr_assert_eq(b->row[i].phase, (uint32_t)(s % K3_PHASE_COUNT));
        }
    }
    cr_assert_eq(err.status, 0, "%s", err.text);
    return seen;
}

static inline k3_trace_reader *open_trace(const char *path)
{
    k3_err err = {0};
    k3_trace_reader *r;
    cr_assert_eq(k3_trace_open(&r, path, &err), 0, "%s", err.text);
    return r;
}

static inline char *slurp(size_t *size)
{
    char *data;
    k3_err err = {0};
    cr_assert_eq(k3_read_file(file, 1 << 24, &data, size, &err), 0, "%s", err.text);
    return data;
}

static inline void spill(const void *data, size_t size)
{
    FILE *f = fopen(file, "wb");
    cr_assert(f && fwrite(data, 1, size, f) == size && !fclose(f));
}

/* Status and message of reading the whole file. */
static inline int read_all(k3_err *err)
{
    k3_trace_reader *r;
    const k3_trace_batch *b;
    *err = (k3_err){0};
    int status = k3_trace_open(&r, file, err);
    while (!status && !(status = k3_trace_next(r, &b, err)) && b)
        ;
    k3_trace_free(r);
    return status;
}

#endif
