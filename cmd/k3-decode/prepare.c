/* From the machine and the model to a plan. */
#include "prepare.h"
#include "k3_probe.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double assumed_rate = 3e9; /* bytes/s of a device that nothing is known of */

const char *prepare_trunk(const struct options *o, char buf[4096])
{
    if (o->trunk)
        return strcmp(o->trunk, "none") ? o->trunk : NULL;
    snprintf(buf, 4096, "%s/k3.trunk", o->model);
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
static void look_at_machine(struct machine *m, const struct options *o, const k3_index *ix, const char *trunk)
{
    struct stat a, b;
    struct rates rates = {assumed_rate, assumed_rate};
    if (o->disk_rate)
        rates = (struct rates){(double)o->disk_rate, (double)o->expert_rate};
    *m = (struct machine){.limit = o->mem_limit ? o->mem_limit : k3_memory_limit(), .assumed = rates, .seen = rates,
                          .two_devices = o->disk_rate != o->expert_rate};
    if (o->disk_rate || !ix || !k3_index_config(ix)->moe_layers)
        return;
    const char *experts = expert_shard(ix);
    m->two_devices = trunk && !stat(trunk, &a) && !stat(experts, &b) && a.st_dev != b.st_dev;
    if (!o->plan && !m->two_devices)
        return;
    k3_probe_opts how = {.size = k3_expert_bytes(k3_index_config(ix)), .seconds = 0.4, .huge = o->huge,
                         .depth = o->io_depth ? (uint32_t)o->io_depth : DEFAULT_IO_DEPTH};
    double expert_rate = measure(experts, how);
    how.size = o->tile ? o->tile : DEFAULT_TILE;
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
static uint64_t index_bytes(const struct options *o, const k3_config *c)
{
    char path[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/k3.index", o->model);
    if (!stat(o->index ? o->index : path, &st))
        return (uint64_t)st.st_size;
    return c->moe_layers * c->experts * 24 + (2 << 20);
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

static void fill_input(struct plan_input *in, const struct settings *set, const k3_config *c, const k3_index *ix,
                       const struct demand *d)
{
    const struct options *o = set->o;
    *in = (struct plan_input){.o = o, .c = c, .layers = set->layers, .demand = *d,
                              .expert_room = ix ? streamer_expert_room(ix) : k3_direct_room(k3_expert_bytes(c)),
                              .bounce = bounce_bytes(c), .index_bytes = index_bytes(o, c)};
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

int prepare_plan(struct plan *p, const struct settings *set, const k3_index *ix, const char *trunk, const struct demand *d,
                 k3_err *err)
{
    struct plan_input in;
    struct machine m;
    fill_input(&in, set, k3_index_config(ix), ix, d);
    int status = trunk_tile(ix, trunk, &in.trunk_tile, err);
    if (status)
        return status;
    look_at_machine(&m, set->o, ix, trunk);
    return plan_make(p, &in, &m, err);
}

int print_plan(const struct options *o, k3_err *err)
{
    enum { PROMPT = 32 };
    struct demand d = {.sequences = o->batch ? o->batch : 1, .prompt = PROMPT, .positions = PROMPT + o->gen};
    char buf[4096], path[4096];
    k3_config *c = malloc(sizeof *c);
    k3_index *ix = NULL;
    struct settings set;
    struct plan_input in;
    struct machine m;
    struct plan p;
    int status = c ? k3_config_load(o->model, c, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (!status)
        status = settings_resolve(&set, o, c, err);
    /* Without an index only the config is looked at, and the experts are taken to be adjacent. */
    snprintf(path, sizeof path, "%s/k3.index", o->model);
    if (!status && (o->index || !access(path, F_OK)))
        status = k3_index_open(&ix, o->model, o->index, err);
    if (!status) {
        const char *trunk = ix ? prepare_trunk(o, buf) : NULL;
        fill_input(&in, &set, c, ix, &d);
        status = trunk_tile(ix, trunk, &in.trunk_tile, err);
        if (!status) {
            look_at_machine(&m, o, ix, trunk);
            int fits = plan_make(&p, &in, &m, err);
            plan_print(&p, &in, &m, o->json);
            status = fits ? K3_EDATA : 0;
        }
    }
    k3_index_close(ix);
    free(c);
    return status;
}
