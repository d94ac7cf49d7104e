/* SPDX-License-Identifier: Apache-2.0 */
/* From the command line to what the weight source takes, and --plan. */
#include "prepare.h"

#include <stdlib.h>
#include <unistd.h>

struct stream_place prepare_place(const struct options *o)
{
    return (struct stream_place){.model = o->model, .index_path = o->index, .trunk = o->trunk, .sums = o->sums,
                                 .trunk_rate = o->disk_rate, .expert_rate = o->expert_rate, .memory_limit = o->mem_limit, .measure = o->plan};
}

struct limits prepare_limits(const struct settings *set)
{
    const struct options *o = set->o;
    bool rows = o->logits || o->score_npy;
    return (struct limits){.layers = set->layers, .threads = o->threads, .memory = o->memory, .trunk_bytes = o->trunk_bytes,
                           .cache_bytes = o->cache_bytes, .lookahead = o->lookahead, .spill = o->spill, .gen = o->gen == GEN_MAX ? 0 : o->gen,
                           .context = o->context, .batch = o->batch, .draft = o->draft, .chunk = o->chunk, .tile = o->tile,
                           .ring = o->ring, .io_depth = o->io_depth, .policy = o->policy, .direct = o->direct, .huge = o->huge,
                           .slow_us = (uint32_t)o->slow_us, .every_row = rows || options_judge(o),
                           .single = rows || o->save_state || o->load_state || o->converse || (o->gen == GEN_MAX && !o->context)};
}

int print_plan(const struct options *o, k3_err *err)
{
    enum { PROMPT = 32, ROOM = 4096 };
    struct demand d = {.sequences = o->batch ? o->batch : 1, .prompt = PROMPT,
                       .positions = PROMPT + (o->gen == GEN_MAX || o->converse ? ROOM : o->gen)};
    k3_config *c = malloc(sizeof *c);
    k3_index *ix = NULL;
    struct settings set;
    struct plan p;
    int status = c ? k3_config_load(o->model, c, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (!status)
        status = settings_resolve(&set, o, c, err);
    /* Without an index only the config is looked at. */
    char *path = k3_sidecar_find(o->model, "k3.index");
    if (!status && (o->index || (path && !access(path, F_OK))))
        status = k3_index_open(&ix, o->model, o->index, err);
    if (!status) {
        struct stream_place at = prepare_place(o);
        struct limits l = prepare_limits(&set);
        status = stream_plan(&p, &at, c, ix, &l, &d, err);
        if (p.nitems) {
            plan_print(&p, o->json);
            status = status ? K3_EDATA : 0;
        }
    }
    free(path);
    k3_index_close(ix);
    free(c);
    return status;
}
