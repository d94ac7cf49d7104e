/* SPDX-License-Identifier: Apache-2.0 */
/* k3-index check: all the problems of a folder, not the first. */
#include "store.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROBLEMS_MAX = 1000, NAMED = 3 };

/* ---- the index file -------------------------------------------------------------------- */

/* Shards changed since the index was written, also those that only look changed. */
static int check_index(const char *dir, const char *file, const k3_index *headers, struct problems *p, k3_err *err)
{
    bool touched;
    char *path = file ? strdup(file) : k3_sidecar_find(dir, "k3.index");
    k3_index *ix;
    k3_err e;
    if (!path)
        return k3_fail(err, K3_ESYS, "%s: out of memory", dir);
    if (!file && access(path, F_OK) && errno == ENOENT) {
        free(path);
        return 0;
    }
    if (k3_index_load(&ix, dir, path, &e)) {
        k3_problems_add(p, &e);
        free(path);
        return 0;
    }
    for (uint32_t s = 0; s < ix->nshards; s++) {
        struct stat st;
        char now[24], then[24];
        if (k3_index_check_shard(ix, s, path, &touched, &e) || k3_index_check_sample(ix, s, path, true, &e))
            k3_problems_add(p, &e);
        else if (!stat(ix->paths[s], &st) && shard_time(st.st_mtim) != ix->shards[s].mtime)
            k3_problem(p, ix->shards[s].name, NULL, -1,
                   "changed after it was indexed: same size and header, but modified at %s, not %s",
                   k3_fmt_time(now, shard_time(st.st_mtim)), k3_fmt_time(then, ix->shards[s].mtime));
    }
    if (headers && k3_index_compare(ix, headers, path, &e))
        k3_problems_add(p, &e);
    k3_index_close(ix);
    free(path);
    return 0;
}

/* ---- the list of sizes ------------------------------------------------------------------- */

struct sizes {
    const char *dir, *file;
    struct shard_list shards;
    bool *listed; /* per shard */
    struct problems *p;
};

/* One "NAME BYTES" line against the folder. */
static int check_size(struct sizes *z, unsigned line, char *text, k3_err *err)
{
    char *save, *name = strtok_r(text, " \t\r", &save), *number = name ? strtok_r(NULL, " \t\r", &save) : NULL;
    uint64_t want;
    struct stat st;
    if (!name)
        return 0;
    if (!number || strtok_r(NULL, " \t\r", &save) || k3_num_u64(number, "bytes", 0, INT64_MAX, &want, NULL))
        return k3_fail(err, K3_EDATA, "%s: line %u: not a file name and a number of bytes", z->file, line);
    for (uint32_t i = 0; i < z->shards.n; i++)
        z->listed[i] |= !strcmp(z->shards.name[i], name);
    char *path = k3_path_join(z->dir, name);
    if (!path)
        return k3_fail(err, K3_ESYS, "%s: out of memory", z->file);
    if (stat(path, &st))
        k3_problem(z->p, name, NULL, -1, "%s, but %s lists it", errno == ENOENT ? "is missing" : strerror(errno), z->file);
    else if ((uint64_t)st.st_size != want)
        k3_problem(z->p, name, NULL, -1, "%lld bytes, %s says %" PRIu64 ": %lld too %s", (long long)st.st_size, z->file, want,
                llabs((long long)st.st_size - (long long)want), (uint64_t)st.st_size < want ? "few" : "many");
    free(path);
    return 0;
}

static int check_sizes(const char *dir, const char *file, struct problems *p, k3_err *err)
{
    struct sizes z = {.dir = dir, .file = file, .p = p};
    struct problems known = {.limit = 0};
    char *text = NULL, *line, *next;
    size_t size;
    unsigned n = 1;
    int status = k3_shards_find(dir, &z.shards, &known, err);
    if (!status && !(z.listed = calloc(z.shards.n + 1, sizeof *z.listed)))
        status = k3_fail(err, K3_ESYS, "%s: out of memory", file);
    if (!status)
        status = k3_read_file(file, 64 << 20, &text, &size, err);
    if (!status && k3_byte_order_mark(text, size))
        status = k3_fail_at(err, K3_EDATA, file, NULL, -1, "%s", k3_byte_order_mark(text, size));
    for (line = text; line && !status; line = next, n++) {
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        status = check_size(&z, n, line, err);
    }
    for (uint32_t i = 0; i < z.shards.n && !status; i++)
        if (!z.listed[i])
            k3_problem(p, z.shards.name[i], NULL, -1, "is not listed in %s", file);
    free(text);
    free(z.listed);
    k3_shards_free(&z.shards);
    return status;
}

/* ---- model.safetensors.index.json ----------------------------------------------------------- */

/* The first few names of one kind of disagreement. */
struct few {
    char text[NAMED * (K3_NAME_MAX + 4)];
    size_t len;
    uint64_t n;
};

static void add_name(struct few *f, const char *name)
{
    if (f->n++ < NAMED)
        f->len += (size_t)snprintf(f->text + f->len, sizeof f->text - f->len, "%s%.*s", f->len ? ", " : "", K3_NAME_MAX, name);
}

static void report_few(struct problems *p, const char *file, const struct few *f, const char *what)
{
    if (f->n)
        k3_problem(p, file, NULL, -1, "%" PRIu64 " tensors %s: %s%s", f->n, what, f->text, f->n > NAMED ? ", ..." : "");
}

static void compare_map(const k3_index *ix, const char *file, json_t *map, struct problems *p)
{
    struct few gone = {.n = 0}, moved = {.n = 0}, absent = {.n = 0};
    const char *name;
    json_t *v;
    k3_entry e;
    json_object_foreach (map, name, v) {
        if (!k3_index_find(ix, name, &e) || strcmp(e.name, name))
            add_name(&gone, name);
        else if (!json_is_string(v) || strcmp(json_string_value(v), k3_index_shard_name(ix, e.at.shard)))
            add_name(&moved, name);
    }
    for (uint64_t i = 0, n = k3_index_count(ix); i < n; i++) {
        k3_index_entry(ix, i, &e);
        if (!json_object_get(map, e.name))
            add_name(&absent, e.name);
    }
    report_few(p, file, &gone, "listed there are in no shard");
    report_few(p, file, &moved, "are in another shard than it says");
    report_few(p, file, &absent, "of the shards are not listed");
}

static int check_map(const k3_index *ix, struct problems *p, k3_err *err)
{
    static const char name[] = "model.safetensors.index.json";
    char *path = k3_path_join(ix->dir, name), *text;
    json_error_t je;
    size_t size;
    if (!path)
        return k3_fail(err, K3_ESYS, "%s: out of memory", ix->dir);
    if (access(path, F_OK) && errno == ENOENT) {
        free(path);
        return 0;
    }
    int status = k3_read_file(path, UINT64_C(1) << 30, &text, &size, err);
    free(path);
    if (status)
        return status;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &je), *map = json_object_get(root, "weight_map");
    const char *mark = k3_byte_order_mark(text, size);
    free(text);
    if (mark)
        k3_problem(p, name, NULL, -1, "%s", mark);
    else if (!root)
        k3_problem(p, name, NULL, -1, "line %d: %s", je.line, je.text);
    else if (!json_is_object(map))
        k3_problem(p, name, NULL, -1, "weight_map is missing or not an object");
    else
        compare_map(ix, name, map, p);
    json_decref(root);
    return 0;
}

/* A sidecar of checksums that later reads would refuse. */
static bool check_sums(const k3_index *ix, struct problems *p)
{
    k3_sums *sums;
    k3_err e;
    if (k3_sums_open(&sums, ix, NULL, &e))
        k3_problems_add(p, &e);
    bool fit = sums != NULL;
    k3_sums_close(sums);
    return fit;
}

/* ---- all of it --------------------------------------------------------------------------------- */

static void count_shards(k3_check *out, const char *dir)
{
    struct problems none = {.limit = 0};
    struct shard_list list;
    if (k3_shards_find(dir, &list, &none, NULL))
        return;
    out->shards = list.n;
    for (uint32_t i = 0; i < list.n; i++) {
        struct stat st;
        char *path = k3_path_join(dir, list.name[i]);
        if (path && !stat(path, &st))
            out->bytes += (uint64_t)st.st_size;
        free(path);
    }
    k3_shards_free(&list);
}

static bool same_problem(const k3_err *a, const k3_err *b)
{
    return !strcmp(a->file, b->file) && !strcmp(a->text, b->text);
}

int k3_index_check(k3_check *out, const char *dir, const char *index_file, const char *sizes_file, int threads, k3_err *err)
{
    struct problems p = {.limit = PROBLEMS_MAX};
    k3_index *ix = NULL;
    *out = (k3_check){0};
    int status = k3_index_build_all(&ix, dir, threads, &p, err);
    if (!status)
        status = check_index(dir, index_file, ix, &p, err);
    if (!status && sizes_file)
        status = check_sizes(dir, sizes_file, &p, err);
    if (!status && ix) {
        out->tensors = k3_index_count(ix);
        out->sums = check_sums(ix, &p);
        status = check_map(ix, &p, err);
    }
    k3_index_close(ix);
    if (status) {
        k3_problems_free(&p);
        return status;
    }
    /* A shard that cannot be read is found by the headers and again by the index. */
    size_t kept = 0;
    for (size_t i = 0; i < p.n; i++) {
        size_t k = 0;
        while (k < kept && !same_problem(&p.list[k], &p.list[i]))
            k++;
        if (k == kept)
            p.list[kept++] = p.list[i];
    }
    count_shards(out, dir);
    out->problem = p.list;
    out->problems = kept;
    out->more = p.more;
    return 0;
}

void k3_check_free(k3_check *c)
{
    free(c->problem);
    *c = (k3_check){0};
}
