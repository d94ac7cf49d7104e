/* SPDX-License-Identifier: Apache-2.0 */
/* quant-error: what rounding the trunk's matrices to 8 or 4 bits would do to their rows.
 * A row w is rounded to scale * q, q whole, |q| <= 127 or 7, scale = max|w| / 127 or 7;
 * its error is |w - scale * q| / |w|, both Euclidean lengths. */
#include "layer.h"

#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHUNK = 4 << 20 };                /* bytes read at once, if a row group is not more */
enum { INT8, INT4, WIDTHS };
static const double largest_code[WIDTHS] = {127, 7};

/* Of the rows of one tensor, or of all tensors of a kind. */
struct tally {
    uint64_t rows;
    double sum[WIDTHS], worst[WIDTHS];
    uint64_t worst_row[WIDTHS];
};

typedef enum { IN_KDA, IN_MLA, IN_DENSE, IN_MOE, IN_HEAD, KINDS } layer_kind;
static const char *const kind_name[KINDS] = {"kda", "mla", "dense", "moe", "head"};

struct study {
    const layer_opts *o;
    layer_bench b;
    k3_sums *sums;
    int fd;
    uint32_t shard;            /* that fd is of */
    struct tally kind[KINDS];
    uint64_t done, total;      /* bytes that were read, and that will be */
    double began;
    /* the piece at hand */
    const uint16_t *data;      /* [n][cols] */
    uint64_t n, cols;
    double (*error)[WIDTHS];   /* [n] */
};

static double wide(uint16_t bits)
{
    uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* The nearest whole number, ties to even; |x| is at most 127. */
static double nearest(double x)
{
    const double shift = 0x1.8p52;
    return (x + shift) - shift;
}

/* NaN if a value is not finite. */
static void row_error(const uint16_t *w, uint64_t n, double error[WIDTHS])
{
    double most = 0, length = 0, off[WIDTHS] = {0}, scale[WIDTHS];
    for (uint64_t i = 0; i < n; i++) {
        double v = wide(w[i]);
        length += v * v;
        most = fabs(v) > most ? fabs(v) : most;
    }
    for (int k = 0; k < WIDTHS; k++)
        scale[k] = most / largest_code[k];
    for (uint64_t i = 0; i < n && most > 0; i++)
        for (int k = 0; k < WIDTHS; k++) {
            double d = wide(w[i]) - scale[k] * nearest(wide(w[i]) / scale[k]);
            off[k] += d * d;
        }
    for (int k = 0; k < WIDTHS; k++)
        error[k] = !isfinite(length) ? NAN : length > 0 ? sqrt(off[k] / length) : 0;
}

static void rows_work(void *arg, int worker, int workers)
{
    struct study *s = arg;
    size_t begin, end;
    k3_share(s->n, 1, worker, workers, &begin, &end);
    for (size_t i = begin; i < end; i++)
        row_error(s->data + i * s->cols, s->cols, s->error[i]);
}

static int open_shard(struct study *s, uint32_t shard, k3_err *err)
{
    if (s->fd >= 0 && s->shard == shard)
        return 0;
    if (s->fd >= 0)
        close(s->fd);
    s->shard = shard;
    s->fd = open(k3_index_shard_path(s->b.index, shard), O_RDONLY | O_CLOEXEC);
    return s->fd < 0 ? k3_fail_errno(err, k3_index_shard_path(s->b.index, shard), "cannot open") : 0;
}

static void count_row(struct tally *t, uint64_t row, const double error[WIDTHS])
{
    for (int k = 0; k < WIDTHS; k++) {
        t->sum[k] += error[k];
        if (!t->rows || error[k] > t->worst[k]) {
            t->worst[k] = error[k];
            t->worst_row[k] = row;
        }
    }
    t->rows++;
}

/* The next row >= `row` of `wanted` evenly spread over `rows`, or `rows`. */
static uint64_t next_row(uint64_t row, uint64_t wanted, uint64_t rows)
{
    if (!wanted || wanted >= rows)
        return row;
    uint64_t k = (row * wanted + rows - 1) / rows;
    return k < wanted ? k * rows / wanted : rows;
}

/* What there is to know of one tensor. */
struct place {
    int layer;
    k3_tensor_id id;
    k3_tensor t;
    k3_extent at;
    layer_kind kind;
    char name[K3_NAME_MAX], layer_text[16];
};

/* Reads rows [row0, row0 + n), whole groups, and computes their errors. */
static int measure(struct study *s, const struct place *p, uint64_t row0, uint64_t n, void *buf, k3_err *err)
{
    const char *path = k3_index_shard_path(s->b.index, p->at.shard);
    uint64_t row_bytes = p->t.cols * 2;
    int status = k3_pread_full(s->fd, path, buf, n * row_bytes, p->at.offset + row0 * row_bytes, err);
    if (!status)
        status = k3_sums_tensor(s->sums, p->layer, p->id, row0, n, buf, err);
    if (status)
        return status;
    s->done += n * row_bytes;
    k3_progress_bytes("measured", s->done, s->total, s->began);
    s->data = buf;
    s->n = n;
    s->cols = p->t.cols;
    k3_pool_run(s->b.pool, rows_work, s);
    for (uint64_t i = 0; i < n; i++)
        if (isnan(s->error[i][0]))
            return k3_fail_at(err, K3_EDATA, path, p->name, (int64_t)(p->at.offset + (row0 + i) * row_bytes),
                              "row %" PRIu64 " holds a value that is not finite", row0 + i);
    return 0;
}

static void put_row(const struct place *p, uint64_t row, const double error[WIDTHS])
{
    printf("%s\t%s\t%s\t%" PRIu64 "\t%.6g\t%.6g\n", kind_name[p->kind], p->layer_text, p->name, row, error[INT8], error[INT4]);
}

static int study_rows(struct study *s, const struct place *p, struct tally *t, void *buf, uint64_t step, k3_err *err)
{
    uint64_t wanted = s->o->rows, rows = p->t.rows;
    bool sparse = wanted && wanted < rows;
    for (uint64_t row = 0, n; (row = next_row(row, wanted, rows)) < rows; row += n) {
        uint64_t row0 = row / p->t.group * p->t.group, read = sparse ? p->t.group : step;
        if (read > rows - row0)
            read = rows - row0;
        int status = measure(s, p, row0, read, buf, err);
        n = row0 + read - row;
        for (uint64_t r = row; !status && r < row0 + read; r = next_row(r + 1, wanted, rows)) {
            count_row(t, r, s->error[r - row0]);
            if (s->o->each)
                put_row(p, r, s->error[r - row0]);
        }
        if (!status && ferror(stdout))
            status = k3_fail_write(err, "standard output");
        if (status)
            return status;
    }
    return 0;
}

static int study_tensor(struct study *s, struct place *p, k3_err *err)
{
    uint64_t row_bytes = p->t.cols * 2, step = CHUNK / row_bytes / p->t.group * p->t.group;
    if (step < p->t.group)
        step = p->t.group;
    struct tally t = {0}, *all = &s->kind[p->kind];
    void *buf = malloc(step * row_bytes);
    free(s->error);
    s->error = malloc(step * sizeof *s->error);
    int status = buf && s->error ? open_shard(s, p->at.shard, err) : k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " rows", step);
    if (!status)
        status = study_rows(s, p, &t, buf, step, err);
    free(buf);
    if (status)
        return status;
    for (int k = 0; k < WIDTHS; k++) {
        all->sum[k] += t.sum[k];
        all->worst[k] = fmax(all->worst[k], t.worst[k]);
    }
    all->rows += t.rows;
    if (!s->o->each)
        printf("%s\t%s\t%s\t%" PRIu64 "\t%.6g\t%.6g\t%" PRIu64 "\t%.6g\t%.6g\t%" PRIu64 "\n", kind_name[p->kind], p->layer_text, p->name, t.rows,
               t.sum[INT8] / (double)t.rows, t.worst[INT8], t.worst_row[INT8], t.sum[INT4] / (double)t.rows, t.worst[INT4], t.worst_row[INT4]);
    return 0;
}

static bool chosen(const layer_opts *o, const char *name)
{
    for (int i = 0; i < o->npatterns; i++)
        if (k3_name_matches(o->patterns[i], name))
            return true;
    return !o->npatterns;
}

static bool is_matrix(const struct study *s, int layer, int id, struct place *p)
{
    *p = (struct place){.layer = layer, .id = (k3_tensor_id)id};
    if (!k3_schema_tensor(s->b.c, layer, p->id, &p->t) || p->t.use != K3_USE_MATRIX)
        return false;
    k3_tensor_name(p->name, layer, p->id);
    snprintf(p->layer_text, sizeof p->layer_text, layer < 0 ? "-" : "%d", layer);
    p->kind = p->t.place == K3_IN_HEAD     ? IN_HEAD
              : p->t.place == K3_IN_DENSE  ? IN_DENSE
              : p->t.place == K3_IN_MOE    ? IN_MOE
              : s->b.c->is_mla[p->layer]   ? IN_MLA
                                           : IN_KDA;
    return k3_index_tensor(s->b.index, layer, p->id, &p->at);
}

/* The layer to begin with. */
static int first_layer(const layer_opts *o)
{
    return o->layer == K3_NO_LAYER ? 0 : (int)o->layer;
}

/* The layer after *layer, at last the head, which is -1; none after the one layer that was chosen. */
static bool next_layer(const struct study *s, int *layer)
{
    if (s->o->layer != K3_NO_LAYER || *layer < 0)
        return false;
    *layer = *layer + 1 < (int)s->b.c->layers ? *layer + 1 : -1;
    return true;
}

/* Bytes that will be read of one matrix: all, or the groups of the rows that are looked at. */
static uint64_t bytes_of(const layer_opts *o, const k3_tensor *t)
{
    uint64_t groups = (t->rows + t->group - 1) / t->group;
    bool few = o->rows && o->rows < t->rows && o->rows < groups;
    return (few ? o->rows * t->group : t->rows) * t->cols * 2;
}

static uint64_t bytes_of_all(const struct study *s)
{
    uint64_t bytes = 0;
    struct place p;
    int layer = first_layer(s->o);
    do
        for (int id = 0; id < K3_TENSORS; id++)
            if (is_matrix(s, layer, id, &p) && chosen(s->o, p.name))
                bytes += bytes_of(s->o, &p.t);
    while (next_layer(s, &layer));
    return bytes;
}

/* A pattern that chooses nothing is a mistake, told before anything is read. */
static int check_patterns(const struct study *s, k3_err *err)
{
    struct place p;
    for (int i = 0; i < s->o->npatterns; i++) {
        bool found = false;
        int layer = first_layer(s->o);
        do
            for (int id = 0; id < K3_TENSORS; id++)
                found |= is_matrix(s, layer, id, &p) && k3_name_matches(s->o->patterns[i], p.name);
        while (next_layer(s, &layer));
        if (!found)
            return k3_fail(err, K3_EDATA, "%s: no matrix of %s matches \"%s\"", s->o->model,
                           s->o->layer != K3_NO_LAYER ? "that layer" : "trunk or head", s->o->patterns[i]);
    }
    return 0;
}

static void put_kinds(const struct study *s)
{
    for (int i = 0; i < KINDS; i++) {
        const struct tally *t = &s->kind[i];
        if (t->rows)
            printf("%s\t-\tall\t%" PRIu64 "\t%.6g\t%.6g\t-\t%.6g\t%.6g\t-\n", kind_name[i], t->rows, t->sum[INT8] / (double)t->rows,
                   t->worst[INT8], t->sum[INT4] / (double)t->rows, t->worst[INT4]);
    }
}

static int study(struct study *s, k3_err *err)
{
    const layer_opts *o = s->o;
    struct place p;
    int layer = first_layer(o), status = bench_open(&s->b, o, err);
    if (!status && o->layer != K3_NO_LAYER && o->layer >= s->b.c->layers)
        status = k3_fail(err, K3_EUSAGE, "--layer: %" PRIu64 ", the model has the layers 0 to %" PRIu64, o->layer, s->b.c->layers - 1);
    if (status || (status = check_patterns(s, err)) || (status = k3_sums_open(&s->sums, s->b.index, NULL, err)) ||
        (status = k3_pool_new(&s->b.pool, o->threads ? o->threads : k3_threads_default(), err)))
        return status;
    s->total = bytes_of_all(s);
    s->began = k3_now();
    puts(o->each ? "type\tlayer\ttensor\trow\tint8\tint4"
                 : "type\tlayer\ttensor\trows\tint8_mean\tint8_worst\tint8_row\tint4_mean\tint4_worst\tint4_row");
    do
        for (int id = 0; id < K3_TENSORS && !status; id++)
            if (is_matrix(s, layer, id, &p) && chosen(o, p.name))
                status = study_tensor(s, &p, err);
    while (!status && next_layer(s, &layer));
    k3_progress_end();
    if (!status && !o->each)
        put_kinds(s);
    return status;
}

int layer_quant_error(const layer_opts *o, k3_err *err)
{
    struct study s = {.o = o, .fd = -1};
    int status = study(&s, err);
    if (s.fd >= 0)
        close(s.fd);
    free(s.error);
    k3_sums_close(s.sums);
    bench_close(&s.b);
    return status;
}
