/* SPDX-License-Identifier: Apache-2.0 */
/* The machine and the model, as the plan sees them. */
#include "advice.h"
#include "plan.h"
#include "storage.h"
#include "thresholds.h"
#include "k3_direct.h"
#include "k3_probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The path of a file beside the model in buf. */
static void beside(const struct stream_place *at, const char *name, char buf[4096])
{
    char *path = k3_sidecar_find(at->model, name);
    snprintf(buf, 4096, "%s", path ? path : "");
    free(path);
}

const char *stream_trunk_path(const struct stream_place *at, char buf[4096])
{
    if (at->trunk)
        return strcmp(at->trunk, "none") ? at->trunk : NULL;
    beside(at, "k3.trunk", buf);
    return access(buf, F_OK) ? NULL : buf;
}

/* The shard in which the routed experts start. */
static const char *expert_shard(const k3_index *ix)
{
    const k3_config *c = k3_index_config(ix);
    k3_extent at[K3_PARTS];
    k3_index_expert(ix, (int)c->first_moe, 0, at);
    return k3_index_shard_path(ix, at[0].shard);
}

/* Bytes/s, or 0 if the file cannot tell. */
static double measure(const char *path, k3_probe_opts how)
{
    k3_probe r;
    k3_err ignored;
    struct stat st;
    if (stat(path, &st) || st.st_size < 4096)
        return 0;
    if ((uint64_t)st.st_size < 2 * how.size)
        how.size = (uint64_t)st.st_size / 2;
    return k3_probe_file(&r, path, &how, &ignored) ? 0 : (double)r.bytes / r.seconds;
}

/* Memory and device rates; measured for --plan, which predicts with them, and for two devices, where the split
 * depends on them. */
static void look_at_machine(struct machine *m, const struct stream_place *at, const struct limits *l, const k3_index *ix,
                            const char *trunk)
{
    struct stat a, b;
    struct rates rates = {assumed_rate, assumed_rate};
    if (at->trunk_rate)
        rates = (struct rates){(double)at->trunk_rate, (double)at->expert_rate};
    *m = (struct machine){.limit = at->memory_limit ? at->memory_limit : k3_memory_limit(l->memory == UINT64_MAX ? 0 : l->memory), .assumed = rates, .seen = rates,
                          .two_devices = at->trunk_rate != at->expert_rate};
    if (at->trunk_rate || !ix || !k3_index_config(ix)->moe_layers)
        return;
    const char *experts = expert_shard(ix);
    m->two_devices = trunk && !stat(trunk, &a) && !stat(experts, &b) && a.st_dev != b.st_dev;
    if (!at->measure && !m->two_devices)
        return;
    k3_probe_opts how = {.size = k3_expert_bytes(k3_index_config(ix)), .seconds = 0.4, .huge = l->huge,
                         .depth = l->io_depth ? (uint32_t)l->io_depth : DEFAULT_IO_DEPTH};
    double expert_rate = measure(experts, how);
    how.size = l->tile ? l->tile : DEFAULT_TILE;
    how.in_order = true;
    double rate = measure(trunk ? trunk : experts, how);
    if (expert_rate > 0 && rate > 0) {
        m->seen = (struct rates){rate, expert_rate};
        m->measured = true;
        if (m->two_devices)
            m->assumed = m->seen;
    }
}

/* Memory for the index: the mapped file, or what reading every header leaves behind. */
static uint64_t index_bytes(const struct stream_place *at, const k3_config *c)
{
    char path[4096];
    struct stat st;
    beside(at, "k3.index", path);
    if (!stat(at->index_path ? at->index_path : path, &st))
        return (uint64_t)st.st_size;
    return c->moe_layers * c->experts * 24 + without_index_bytes;
}

static uint64_t bounce_bytes(const k3_config *c)
{
    uint64_t most = 0;
    for (int l = -1; l < (int)c->layers; l++)
        for (int id = 0; id < K3_TENSORS; id++) {
            k3_tensor t;
            if (k3_schema_tensor(c, l, (k3_tensor_id)id, &t) && t.use == K3_USE_VECTOR && t.bytes > most)
                most = t.bytes;
        }
    return k3_direct_room(most);
}

static int trunk_tile(const k3_index *ix, const char *trunk, uint64_t *tile, k3_err *err)
{
    k3_trunk *t;
    *tile = 0;
    int status = trunk ? k3_trunk_open(&t, trunk, ix, err) : 0;
    if (trunk && !status) {
        *tile = k3_trunk_tile_bytes(t);
        k3_trunk_close(t);
    }
    return status;
}

int stream_plan(struct plan *p, const struct stream_place *at, const k3_config *c, const k3_index *ix,
                const struct limits *l, const struct demand *d, k3_err *err)
{
    char buf[4096];
    const char *trunk = ix ? stream_trunk_path(at, buf) : NULL;
    struct plan_input in = {.limits = l, .c = c, .demand = *d,
                            .expert_room = ix ? storage_expert_room(ix) : k3_direct_room(k3_expert_bytes(c)),
                            .bounce = bounce_bytes(c), .index_bytes = index_bytes(at, c)};
    struct machine m;
    *p = (struct plan){0};
    int status = trunk_tile(ix, trunk, &in.trunk_tile, err);
    if (status)
        return status;
    look_at_machine(&m, at, l, ix, trunk);
    return plan_make(p, &in, &m) ? 0 : advice_refuse(p, &in, err);
}
