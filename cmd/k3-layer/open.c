/* SPDX-License-Identifier: Apache-2.0 */
/* Index, kernels, threads, weights and workspace. */
#include "layer.h"

enum { TILE = 16 << 20 };

int bench_open(layer_bench *b, const layer_opts *o, k3_err *err)
{
    *b = (layer_bench){0};
    if (!(b->kernels = k3_kernels_select(NULL, err)))
        return err->status;
    int status = k3_index_open(&b->index, o->model, o->index_file, err);
    if (!status)
        b->c = k3_index_config(b->index);
    return status;
}

int bench_prepare(layer_bench *b, const layer_opts *o, uint64_t first, uint64_t last, bool head, uint64_t tokens,
                  uint64_t positions, k3_err *err)
{
    int status;
    uint64_t pass = tokens < o->chunk ? tokens : o->chunk;
    if ((status = k3_pool_new(&b->pool, o->threads ? o->threads : k3_threads_default(), err)) ||
        (status = k3_source_plain(&b->source, b->index, first, last, head, TILE, err)))
        return status;
    return k3_model_new(&b->model, b->c, b->kernels, b->pool, pass ? pass : 1, positions ? positions : 1, err);
}

void bench_close(layer_bench *b)
{
    k3_model_free(b->model);
    k3_source_close(b->source);
    k3_pool_free(b->pool);
    k3_index_close(b->index);
}
