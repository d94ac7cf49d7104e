/* SPDX-License-Identifier: Apache-2.0 */
/* One layer, or one part of it. */
#include "layer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A call: its input, what it computes into, and the state it carries. */
struct call {
    const layer_opts *o;
    layer_bench *b;
    layer_stream in;
    float *out;       /* [tokens][hidden] of a part */
    int32_t *experts; /* [tokens][topk] of the router */
    float *weights;   /* [tokens][topk] */
    uint64_t routed;  /* tokens routed so far */
    k3_state *state;  /* NULL where no attention runs */
};

static bool needs_state(const layer_opts *o)
{
    return o->part < 0 || o->part == K3_PART_ATTN;
}

/* An empty state with room for the tokens that come, or the one in the state file and as much room after it.
 * *positions: where the sequence will stand. */
static int start_state(struct call *r, uint64_t *positions, k3_err *err)
{
    const layer_opts *o = r->o;
    k3_state_file *file = NULL;
    int status = 0;
    *positions = r->in.tokens;
    if (o->state_file && (access(o->state_file, F_OK) == 0 || errno != ENOENT)) {
        if ((status = k3_state_open(&file, o->state_file, err)))
            return status;
        if (!k3_add_u64(*positions, k3_state_describe(file)->position, positions))
            status = k3_fail(err, K3_EDATA, "%s: damaged state file: %" PRIu64 " tokens seen", o->state_file,
                             k3_state_describe(file)->position);
    }
    if (!status && needs_state(o))
        status = k3_state_new(&r->state, r->b->c, o->layer + 1, *positions, err);
    if (!status && file)
        status = k3_index_check_weights(r->b->index, err);
    if (!status && file)
        status = k3_state_load(r->state, o->layer, k3_index_fingerprint(r->b->index), file, err);
    k3_state_close(file);
    if (!status && o->state_file)
        status = k3_file_probe(o->state_file, err);
    if (!status && *positions > r->b->c->max_positions)
        k3_note("warning: the sequence reaches %" PRIu64 " positions, the model was made for %" PRIu64, *positions,
                r->b->c->max_positions);
    return status;
}

static int on_router(void *arg, int layer, const uint16_t *experts, const float *weights, size_t tokens)
{
    struct call *r = arg;
    size_t K = r->b->c->topk, n = tokens * K, at = r->routed * K;
    (void)layer;
    for (size_t i = 0; i < n; i++)
        r->experts[at + i] = experts[i];
    memcpy(r->weights + at, weights, n * sizeof *weights);
    r->routed += tokens;
    return 0;
}

/* Tokens [at, at + n) through the whole layer. */
static int pass_layer(struct call *r, uint64_t at, uint64_t n, k3_err *err)
{
    size_t d = r->b->c->hidden, bytes = n * d * sizeof(float);
    float *sum = r->in.data + (r->in.n - 1) * r->in.plane + at * d;
    for (uint64_t i = 0; i + 1 < r->in.n; i++)
        memcpy(k3_snapshot(r->b->model, i), r->in.data + i * r->in.plane + at * d, bytes);
    memcpy(k3_stream(r->b->model), sum, bytes);
    int status = k3_layer(r->b->model, r->b->source, (int)r->o->layer, err);
    if (!status)
        memcpy(r->out + at * d, k3_stream(r->b->model), bytes);
    return status;
}

static int pass_part(struct call *r, uint64_t at, k3_err *err)
{
    size_t d = r->b->c->hidden;
    return k3_part(r->b->model, r->b->source, (int)r->o->layer, (k3_layer_part)r->o->part, r->in.data + at * d,
                   r->out + at * d, err);
}

static int run_passes(struct call *r, k3_err *err)
{
    k3_source *src = r->b->source;
    uint64_t n;
    int status = 0;
    for (uint64_t at = 0; at < r->in.tokens && !status; at += n) {
        n = r->in.tokens - at < r->o->chunk ? r->in.tokens - at : r->o->chunk;
        k3_span span = {.state = r->state, .n = n};
        if ((status = k3_pass_begin(r->b->model, &span, 1, err)) ||
            (status = src->begin(src, false, at + n < r->in.tokens, err)) ||
            (status = r->o->part < 0 ? pass_layer(r, at, n, err) : pass_part(r, at, err)))
            return status;
        k3_pass_end(r->b->model);
    }
    return status;
}

/* Out of a layer come the snapshots that went in, the sum that went in as one
 * more where a block starts, and the new sum. */
static int write_layer(struct call *r, k3_err *err)
{
    layer_stream *in = &r->in;
    uint64_t d = r->b->c->hidden, after = k3_snapshots_before(r->b->c, r->o->layer + 1);
    int status =
        k3_npy_write_header(stdout, "standard output", "<f4", 3, (uint64_t[]){after + 1, in->tokens, d}, err);
    if (status)
        return status;
    if (fwrite(in->data, sizeof(float) * in->plane, after, stdout) != (in->plane ? after : 0) ||
        fwrite(r->out, sizeof(float), in->plane, stdout) != in->plane || fflush(stdout))
        return k3_fail_write(err, "standard output");
    return 0;
}

static int write_router(struct call *r, k3_err *err)
{
    const uint64_t shape[2] = {r->in.tokens, r->b->c->topk};
    const char *path = r->o->weights_file;
    k3_file *file = NULL;
    int status = path ? k3_file_create(&file, path, err) : 0;
    if (!status && path)
        status = k3_npy_write(k3_file_stream(file), path, "<f4", 2, shape, r->weights, err);
    if (!status)
        status = write_stdout("<i4", 2, shape, r->experts, err);
    if (!status && path)
        status = k3_file_commit(&file, err);
    k3_file_abort(&file);
    return status;
}

static int write_result(struct call *r, k3_err *err)
{
    if (r->o->part < 0)
        return write_layer(r, err);
    if (r->o->part == K3_PART_ROUTER)
        return write_router(r, err);
    return write_stdout("<f4", 2, (uint64_t[]){r->in.tokens, r->b->c->hidden}, r->out, err);
}

static int make_room(struct call *r, k3_err *err)
{
    uint64_t routes = r->in.tokens * r->b->c->topk;
    r->out = malloc(r->in.plane * sizeof *r->out + 1);
    if (r->o->part == K3_PART_ROUTER) {
        r->experts = malloc(routes * sizeof *r->experts + 1);
        r->weights = malloc(routes * sizeof *r->weights + 1);
        k3_model_hooks(r->b->model, &(k3_hooks){.arg = r, .router = on_router});
    }
    if (!r->out || (r->o->part == K3_PART_ROUTER && (!r->experts || !r->weights)))
        return k3_fail(err, K3_ESYS, "out of memory for the output of %" PRIu64 " tokens", r->in.tokens);
    return 0;
}

static int run(struct call *r, k3_err *err)
{
    const layer_opts *o = r->o;
    uint64_t snapshots, positions;
    char who[32];
    int status = bench_open(r->b, o, err);
    if (status)
        return status;
    if (o->layer >= r->b->c->layers)
        return k3_fail(err, K3_EUSAGE, "--layer: %" PRIu64 ", the model has the layers 0 to %" PRIu64, o->layer,
                       r->b->c->layers - 1);
    snapshots = o->part < 0 ? k3_snapshots_before(r->b->c, o->layer) : 0;
    snprintf(who, sizeof who, o->part < 0 ? "layer %" PRIu64 : "a part of layer %" PRIu64, o->layer);
    if ((status = read_stream(&r->in, snapshots, r->b->c->hidden, who, err)) ||
        (status = start_state(r, &positions, err)) ||
        (status = bench_prepare(r->b, o, o->layer, o->layer + 1, false, r->in.tokens, positions, err)) ||
        (status = make_room(r, err)) || (status = run_passes(r, err)) || (status = write_result(r, err)))
        return status;
    /* Last: a state only moves on once its output is out. */
    if (o->state_file)
        status = k3_state_save(r->state, o->layer, k3_index_fingerprint(r->b->index), NULL, 0, o->state_file, err);
    return status;
}

int layer_run(const layer_opts *o, k3_err *err)
{
    layer_bench b = {0};
    struct call r = {.o = o, .b = &b};
    int status = run(&r, err);
    k3_npy_free(&r.in.a);
    k3_state_free(r.state);
    free(r.out);
    free(r.experts);
    free(r.weights);
    bench_close(&b);
    return status;
}
