/* SPDX-License-Identifier: Apache-2.0 */
/* embed.c - the library inside another program: the model goes on greedily after some ids.
 *
 *   cc embed.c $(pkg-config --cflags --libs k3) -o embed
 *   ./embed MODEL COUNT ID...
 *
 * It reads the shards as they are needed and keeps none of them; k3-decode has the streamer that reads ahead. */
#include "k3_model.h"

#include <inttypes.h>
#include <stdlib.h>

struct engine {
    k3_index *index;
    const k3_config *config;
    const k3_kernels *kernels;
    k3_pool *pool;
    k3_source *source;
    k3_model *model;
    k3_state *state;
    float *logits; /* [vocab] */
};

static int engine_open(struct engine *e, const char *folder, size_t prompt, uint64_t positions, k3_err *err)
{
    enum { TILE = 4 << 20 }; /* bytes of a matrix in memory at once */
    int status = k3_index_open(&e->index, folder, NULL, err);
    if (status)
        return status;
    e->config = k3_index_config(e->index);
    if (!(e->kernels = k3_kernels_select(NULL, err)))
        return err->status;
    if (!(e->logits = malloc(e->config->vocab * sizeof *e->logits)))
        return k3_fail(err, K3_ESYS, "out of memory for the logits");
    if ((status = k3_pool_new(&e->pool, k3_threads_default(), err)) ||
        (status = k3_source_plain(&e->source, e->index, 0, e->config->layers, true, TILE, err)) ||
        (status = k3_state_new(&e->state, e->config, e->config->layers, positions, err)))
        return status;
    return k3_model_new(&e->model, e->config, e->kernels, e->pool, prompt, positions, err);
}

static void engine_close(struct engine *e)
{
    k3_model_free(e->model);
    k3_state_free(e->state);
    k3_source_close(e->source);
    k3_pool_free(e->pool);
    k3_index_close(e->index);
    free(e->logits);
}

/* Feeds ids[0..n), then writes `count` more. */
static int generate(struct engine *e, const uint32_t *ids, size_t n, uint64_t count, k3_err *err)
{
    uint32_t next;
    for (uint64_t i = 0; i < count; i++) {
        k3_span span = {.state = e->state, .ids = i ? &next : ids, .n = i ? 1 : n, .logits = 1};
        int status = k3_forward(e->model, e->source, &span, 1, e->config->layers, i + 1 < count, e->logits, err);
        if (status)
            return status;
        k3_topk(e->logits, e->config->vocab, 1, &next);
        printf("%" PRIu32 "%c", next, i + 1 < count ? ' ' : '\n');
        fflush(stdout);
    }
    return 0;
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    struct engine e = {0};
    uint64_t count, id;
    k3_prog_start("embed");
    if (argc < 4) {
        fputs("usage: embed MODEL COUNT ID...\n", stderr);
        return k3_prog_end(K3_EUSAGE);
    }
    size_t n = (size_t)argc - 3;
    uint32_t *ids = malloc(n * sizeof *ids);
    int status = ids ? k3_num_u64(argv[2], "COUNT", 1, 1000000, &count, &err) : k3_fail(&err, K3_ESYS, "out of memory");
    for (size_t i = 0; i < n && !status; i++) {
        status = k3_num_u64(argv[3 + i], "ID", 0, UINT32_MAX, &id, &err);
        ids[i] = (uint32_t)id;
    }
    if (!status)
        status = engine_open(&e, argv[1], n, n + count, &err);
    if (!status)
        status = generate(&e, ids, n, count, &err);
    engine_close(&e);
    free(ids);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
