/* SPDX-License-Identifier: Apache-2.0 */
/* probe: how fast a device delivers, read the way k3-decode reads experts or trunk. */
#include "index.h"
#include "k3_probe.h"

#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

enum { RELEASED_EXPERT = 17547264 }; /* bytes */

/* The file to read and the size of a read where they were not given. */
static int choose(const index_opts *o, char *path, size_t room, uint64_t *size, k3_err *err)
{
    k3_index *ix;
    k3_extent at[K3_PARTS];
    if (o->operand) {
        snprintf(path, room, "%s", o->operand);
        *size = o->read_size ? o->read_size : RELEASED_EXPERT;
        return 0;
    }
    int status = k3_index_open(&ix, o->model, o->index_file, err);
    if (status)
        return status;
    const k3_config *c = k3_index_config(ix);
    if (c->moe_layers) {
        k3_index_expert(ix, (int)c->first_moe, 0, at);
        snprintf(path, room, "%s", k3_index_shard_path(ix, at[0].shard));
    } else {
        snprintf(path, room, "%s", k3_index_shard_path(ix, 0));
    }
    *size = o->read_size ? o->read_size : k3_expert_bytes(c);
    k3_index_close(ix);
    return 0;
}

/* Looks at the file: a short one is read in halves unless the size was given. */
static int look(const index_opts *o, const char *path, uint64_t *size, bool *holes, bool *memory, k3_err *err)
{
    struct stat st;
    struct statfs fs;
    if (stat(path, &st))
        return k3_fail_errno(err, path, "cannot stat");
    if (!S_ISREG(st.st_mode))
        return k3_fail_at(err, K3_EUSAGE, path, NULL, -1, "is no regular file; give a large file on the device");
    if (st.st_size < 8192)
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "%lld bytes are too few to measure anything", (long long)st.st_size);
    if (!o->read_size && (uint64_t)st.st_size < 2 * *size)
        *size = (uint64_t)st.st_size / 2;
    *memory = !statfs(path, &fs) && (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC);
    *holes = st.st_blocks < st.st_size / 1024;
    return 0;
}

static int print_json(const index_opts *o, const char *path, uint64_t size, bool holes, const k3_probe *r, k3_err *err)
{
    json_t *list = json_array();
    for (int i = 0; i < o->ndepths; i++)
        json_array_append_new(list, json_pack("{s:I, s:I, s:I, s:f, s:f}", "depth", (json_int_t)o->depths[i], "reads", (json_int_t)r[i].reads,
                                              "bytes", (json_int_t)r[i].bytes, "seconds", r[i].seconds, "rate",
                                              (double)r[i].bytes / r[i].seconds));
    return put_json(json_pack("{s:s%, s:I, s:b, s:b, s:b, s:o}", "file", path, strlen(path), "read_size", (json_int_t)size, "in_order", (int)o->in_order, "direct", (int)r[0].direct,
                              "holes", (int)holes, "depths", list),
                    err);
}

int index_probe(const index_opts *o, k3_err *err)
{
    char path[4096], text[24];
    uint64_t size = 0;
    bool holes = false, memory = false;
    k3_probe r[MAX_DEPTHS];
    int status = choose(o, path, sizeof path, &size, err);
    if (!status)
        status = look(o, path, &size, &holes, &memory, err);
    for (int i = 0; i < o->ndepths && !status; i++) {
        k3_progress(false, "depth %" PRIu32, o->depths[i]);
        k3_probe_opts how = {.size = size, .depth = o->depths[i], .seconds = o->seconds, .in_order = o->in_order, .huge = o->huge};
        status = k3_probe_file(&r[i], path, &how, err);
        r[i].direct &= !memory; /* tmpfs takes O_DIRECT and has no device */
    }
    k3_progress_end();
    if (status)
        return status;
    if (o->json)
        return print_json(o, path, size, holes, r, err);
    put_text(path);
    printf(": %s of %" PRIu64 " bytes, %s\n", o->in_order ? "reads in order" : "random reads", size,
           r[0].direct ? "past the page cache" : "THROUGH THE PAGE CACHE: not the device's speed");
    if (holes)
        printf("the file is mostly holes: not the device's speed\n");
    for (int i = 0; i < o->ndepths; i++)
        printf("depth %2" PRIu32 "  %s/s\n", o->depths[i], k3_fmt_bytes(text, (uint64_t)((double)r[i].bytes / r[i].seconds)));
    return 0;
}
