/* SPDX-License-Identifier: Apache-2.0 */
/* The two ends of a chain of layers: ids to rows, and rows to logits. */
#include "layer.h"
#include "k3_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- embed ---- */

static int add_id(k3_ids *ids, uint32_t id, k3_err *err)
{
    int status = k3_ids_reserve(ids, 1, err);
    if (!status)
        ids->id[ids->n++] = id;
    return status;
}

/* The ids of part of the input. Only blank lines may follow the first line with ids: a second sequence has no place
 * in the array. */
static int take_ids(k3_id_reader *reader, const char *at, const char *end, k3_ids *ids, uint64_t *line, k3_err *err)
{
    uint32_t id;
    int event, status;
    while ((event = k3_id_next(reader, &at, end, &id, err)) != K3_ID_MORE) {
        if (event == K3_ID_LINE)
            continue;
        if (event != K3_ID_VALUE)
            return event;
        if (ids->n && reader->line != *line)
            return k3_fail(err, K3_EDATA,
                           "standard input: a second sequence in line %" PRIu64
                           ", after the %zu ids of line %" PRIu64,
                           reader->line + 1, ids->n, *line + 1);
        *line = reader->line;
        if ((status = add_id(ids, id, err)))
            return status;
    }
    return 0;
}

static int read_ids(k3_ids *ids, uint32_t vocab, k3_err *err)
{
    k3_id_reader reader = {.name = "standard input", .vocab = vocab};
    uint64_t line = 0;
    char buf[8192];
    size_t n;
    int status;
    while ((n = fread(buf, 1, sizeof buf, stdin)))
        if ((status = take_ids(&reader, buf, buf + n, ids, &line, err)))
            return status;
    if (ferror(stdin))
        return k3_fail_errno(err, "standard input", "cannot read");
    const char end = '\n'; /* ends a number that was the last of the input */
    return take_ids(&reader, &end, &end + 1, ids, &line, err);
}

static int write_rows(layer_bench *b, const layer_opts *o, const k3_ids *ids, k3_err *err)
{
    uint64_t d = b->c->hidden, n;
    uint64_t most = ids->n < o->chunk ? ids->n : o->chunk;
    uint16_t *rows = malloc(most * d * sizeof *rows + 1);
    float *wide = malloc(most * d * sizeof *wide + 1);
    int status = rows && wide ? 0 : k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " rows", most);
    if (!status)
        status = k3_npy_write_header(stdout, "standard output", "<f4", 2, (uint64_t[]){ids->n, d}, err);
    for (uint64_t at = 0; at < ids->n && !status; at += n) {
        n = ids->n - at < most ? ids->n - at : most;
        if ((status = b->source->embed(b->source, ids->id + at, n, rows, err)))
            break;
        b->kernels->widen_bf16(wide, rows, n * d);
        if (fwrite(wide, sizeof *wide * d, n, stdout) != n)
            status = k3_fail_write(err, "standard output");
    }
    free(rows);
    free(wide);
    return status;
}

int layer_embed(const layer_opts *o, k3_err *err)
{
    layer_bench b;
    k3_ids ids = {0};
    int status = bench_open(&b, o, err);
    if (!status)
        status = read_ids(&ids, (uint32_t)b.c->vocab, err);
    if (!status)
        status = k3_source_plain(&b.source, b.index, 0, 0, false, 4096, err);
    if (!status)
        status = write_rows(&b, o, &ids, err);
    k3_ids_free(&ids);
    bench_close(&b);
    return status;
}

/* ---- head ---- */

static int write_logits(layer_bench *b, const layer_opts *o, const layer_stream *in, uint64_t layers, k3_err *err)
{
    uint64_t d = b->c->hidden, V = b->c->vocab, n;
    uint64_t most = in->tokens < o->chunk ? in->tokens : o->chunk;
    float *logits = malloc(most * V * sizeof *logits + 1);
    int status = logits ? 0 : k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " rows of logits", most);
    if (!status)
        status = k3_npy_write_header(stdout, "standard output", "<f4", 2, (uint64_t[]){in->tokens, V}, err);
    for (uint64_t at = 0; at < in->tokens && !status; at += n) {
        n = in->tokens - at < most ? in->tokens - at : most;
        k3_span span = {.n = n, .logits = n};
        if ((status = k3_pass_begin(b->model, &span, 1, err)) ||
            (status = b->source->begin(b->source, true, false, err)))
            break;
        for (uint64_t i = 0; i < in->n; i++)
            memcpy(i + 1 < in->n ? k3_snapshot(b->model, i) : k3_stream(b->model), in->data + i * in->plane + at * d,
                   n * d * sizeof(float));
        if (!(status = k3_head(b->model, b->source, layers, logits, err)) &&
            fwrite(logits, sizeof *logits * V, n, stdout) != n)
            status = k3_fail_write(err, "standard output");
    }
    free(logits);
    return status;
}

int layer_head(const layer_opts *o, k3_err *err)
{
    layer_bench b;
    layer_stream in = {0};
    int status = bench_open(&b, o, err);
    uint64_t layers = status ? 0 : o->layers ? o->layers : b.c->layers;
    if (!status && layers > b.c->layers)
        status = k3_fail(err, K3_EUSAGE, "--layers: %" PRIu64 ", the model has %" PRIu64, layers, b.c->layers);
    if (!status)
        status = read_stream(&in, k3_snapshots_before(b.c, layers), b.c->hidden, "the head", err);
    if (!status)
        status = bench_prepare(&b, o, layers, layers, true, in.tokens, in.tokens, err);
    if (!status)
        status = write_logits(&b, o, &in, layers, err);
    k3_npy_free(&in.a);
    bench_close(&b);
    return status;
}
