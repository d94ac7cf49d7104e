/* SPDX-License-Identifier: Apache-2.0 */
/* mkckpt - writes a synthetic checkpoint of any size that a config describes.
 *
 * Full data is random of lively magnitude; a sparse checkpoint keeps the
 * shape, names and file sizes of the real one in a few GB of disk. */
#include "mkckpt.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const char usage[] = "usage: mkckpt --config CONFIG.json [options] OUTDIR\n"
                            "Writes a synthetic checkpoint into the new or empty folder OUTDIR.\n";

typedef struct settings {
    const char *config, *out;
    uint64_t layers, experts; /* 0: the config's */
    uint64_t seed;
    int threads;
    bool sparse, holes;
    int shuffled;
} settings;

#define AT(field) offsetof(settings, field)
static const k3_opt options[] = {
    {"config", 'c', "FILE", "the config.json to follow", K3_OPT_TEXT, AT(config)},
    {"layers", 0, "N", "keep the first N layers", K3_OPT_U64, AT(layers), 1, K3_MAX_LAYERS},
    {"experts", 0, "N", "N routed experts instead of the config's", K3_OPT_U64, AT(experts), 1, INT32_MAX},
    {"seed", 0, "N", "the data depends on it (default 1)", K3_OPT_U64, AT(seed)},
    {"sparse", 0, NULL, "holes for experts and big matrices; vectors, routers and\nsome rows of embedding and head are real",
     K3_OPT_FLAG, AT(sparse)},
    {"holes", 0, NULL, "headers only, all data holes", K3_OPT_FLAG, AT(holes)},
    {"order", 0, "ORDER", "released, or shuffled: tensors in an odd order, layers over two shards", K3_OPT_WORD, AT(shuffled),
     .words = "released|shuffled"},
    {"threads", 0, "N", "threads that generate and write", K3_OPT_INT, AT(threads), 1, 1024},
    K3_COMMON_OPTS,
    {0},
};

static int read_options(int argc, char **argv, settings *s, bool *done, k3_err *err)
{
    k3_args a = {.argc = argc, .argv = argv, .table = options, .usage = usage};
    int status = k3_opt_parse(&a, s, done, err);
    if (status || *done)
        return status;
    if (!s->config || a.noperands != 1)
        return k3_fail(err, K3_EUSAGE, "needs --config FILE and one OUTDIR; try --help");
    s->out = a.operands[0];
    return 0;
}

/* ---- config ------------------------------------------------------------------------ */

static void cut_list(json_t *list, uint64_t layers)
{
    for (size_t i = json_array_size(list); i-- > 0;)
        if (json_integer_value(json_array_get(list, i)) > (json_int_t)layers)
            json_array_remove(list, i);
}

/* The config as text, adjusted to --layers and --experts. */
static int adjust_config(const settings *s, json_t *root, char **text, k3_err *err)
{
    json_t *t = json_object_get(root, "text_config"), *lin = json_object_get(t, "linear_attn_config");
    json_int_t all = json_integer_value(json_object_get(t, "num_hidden_layers"));
    if (s->layers && t && (json_int_t)s->layers > all)
        return k3_fail(err, K3_EUSAGE, "--layers: %s has only %" JSON_INTEGER_FORMAT " layers", s->config, all);
    if (s->layers) {
        json_object_set_new(t, "num_hidden_layers", json_integer((json_int_t)s->layers));
        cut_list(json_object_get(lin, "full_attn_layers"), s->layers);
        cut_list(json_object_get(lin, "kda_layers"), s->layers);
    }
    if (s->experts)
        json_object_set_new(t, "num_experts", json_integer((json_int_t)s->experts));
    *text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
    return *text ? 0 : k3_fail(err, K3_ESYS, "%s: out of memory", s->config);
}

static int read_config(const settings *s, json_t **root, char **text, k3_config *c, k3_err *err)
{
    char *data;
    size_t size;
    json_error_t je;
    int status = k3_read_file(s->config, 16 << 20, &data, &size, err);
    if (status)
        return status;
    *root = json_loadb(data, size, JSON_REJECT_DUPLICATES, &je);
    free(data);
    if (!*root)
        return k3_fail(err, K3_EUSAGE, "%s: line %d: %s", s->config, je.line, je.text);
    if ((status = adjust_config(s, *root, text, err)))
        return status;
    return k3_config_parse(*text, strlen(*text), s->config, c, err);
}

/* ---- output -------------------------------------------------------------------------- */

/* *made: the folder is new. */
static int make_folder(const char *dir, bool *made, k3_err *err)
{
    *made = mkdir(dir, 0777) == 0;
    if (*made)
        return 0;
    if (errno != EEXIST)
        return k3_fail_errno(err, dir, "cannot make the folder");
    DIR *d = opendir(dir);
    if (!d)
        return k3_fail_errno(err, dir, "cannot open the folder");
    int entries = 0;
    while (entries < 3 && readdir(d))
        entries++;
    closedir(d);
    return entries < 3 ? 0 : k3_fail(err, K3_EUSAGE, "%s: the folder is not empty", dir);
}

typedef struct headers {
    maker *m;
    atomic_size_t next;
    pthread_mutex_t lock;
    k3_err *err;
    int status;
} headers;

static void plan_and_write(void *arg, int worker, int workers)
{
    headers *h = arg;
    k3_err err = {0};
    (void)worker, (void)workers;
    for (size_t i; (i = atomic_fetch_add(&h->next, 1)) < h->m->nshards;) {
        int status = plan_shard(h->m, i, &err);
        if (!status)
            status = write_header(h->m, &h->m->shards[i], &err);
        if (!status)
            continue;
        pthread_mutex_lock(&h->lock);
        if (!h->status) {
            h->status = status;
            *h->err = err;
        }
        pthread_mutex_unlock(&h->lock);
        return;
    }
}

static int write_headers(maker *m, k3_pool *pool, k3_err *err)
{
    headers h = {.m = m, .err = err, .lock = PTHREAD_MUTEX_INITIALIZER};
    k3_pool_run(pool, plan_and_write, &h);
    return h.status;
}

static int check_space(const maker *m, const char *dir, k3_err *err)
{
    struct statvfs v;
    char need[24], have[24];
    if (statvfs(dir, &v))
        return k3_fail_errno(err, dir, "cannot stat the file system");
    uint64_t left = (uint64_t)v.f_bavail * v.f_frsize, bytes = real_bytes(m);
    if (bytes <= left)
        return 0;
    return k3_fail(err, K3_ESYS, "%s: needs %s, %s are free", dir, k3_fmt_bytes(need, bytes), k3_fmt_bytes(have, left));
}

/* Last, so that a folder with a config.json is a whole checkpoint. */
static int write_config(const char *dir, const char *text, k3_err *err)
{
    char path[4096];
    k3_file *f;
    snprintf(path, sizeof path, "%s/config.json", dir);
    int status = k3_file_create(&f, path, err);
    if (status)
        return status;
    fprintf(k3_file_stream(f), "%s\n", text);
    return k3_file_commit(&f, err);
}

static int write_checkpoint(maker *m, const settings *s, const char *config, k3_pool *pool, k3_err *err)
{
    double start = k3_now();
    uint64_t tensors = 0, bytes = 0;
    char whole[24], real[24];
    int status = write_headers(m, pool, err);
    if (!status)
        status = check_space(m, s->out, err);
    if (!status)
        status = write_data(m, pool, err);
    if (!status)
        status = write_config(s->out, config, err);
    if (status)
        return status;
    for (size_t i = 0; i < m->nshards; i++) {
        tensors += m->shards[i].n;
        bytes += m->shards[i].size;
    }
    k3_note("%s: %zu shards, %" PRIu64 " tensors, %s of which %s are real, %.1f s", s->out, m->nshards, tensors,
            k3_fmt_bytes(whole, bytes), k3_fmt_bytes(real, real_bytes(m)), k3_now() - start);
    return 0;
}

static int make_shards(maker *m, const char *dir, k3_err *err)
{
    m->nshards = m->c.layers + 3;
    m->shards = calloc(m->nshards, sizeof *m->shards);
    if (!m->shards)
        return k3_fail(err, K3_ESYS, "out of memory for %zu shards", m->nshards);
    for (size_t i = 0; i < m->nshards; i++) {
        shard *s = &m->shards[i];
        int n = snprintf(s->path, sizeof s->path, "%s/model-%05zu-of-%06zu.safetensors", dir, i + 1, m->nshards);
        if (n >= (int)sizeof s->path)
            return k3_fail(err, K3_EUSAGE, "%s: the name is too long", dir);
    }
    return 0;
}

static void free_shards(maker *m)
{
    for (size_t i = 0; m->shards && i < m->nshards; i++) {
        for (size_t k = 0; k < m->shards[i].n; k++)
            free(m->shards[i].t[k].name);
        free(m->shards[i].t);
    }
    free(m->shards);
}

static int run(const settings *s, k3_err *err)
{
    json_t *root = NULL;
    char *config = NULL;
    k3_pool *pool = NULL;
    bool made = false;
    maker *m = calloc(1, sizeof *m);
    int status = m ? read_config(s, &root, &config, &m->c, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (status)
        goto done;
    m->vision = json_object_get(root, "vision_config");
    m->mode = s->holes ? DATA_NONE : s->sparse ? DATA_SPARSE : DATA_FULL;
    m->shuffled = s->shuffled;
    m->seed = s->seed;
    if ((status = make_shards(m, s->out, err)) || (status = k3_pool_new(&pool, s->threads, err)) ||
        (status = make_folder(s->out, &made, err)))
        goto done;
    status = write_checkpoint(m, s, config, pool, err);
    for (size_t i = 0; status && i < m->nshards; i++)
        unlink(m->shards[i].path);
    if (status && made)
        rmdir(s->out);
done:
    k3_pool_free(pool);
    if (m)
        free_shards(m);
    free(m);
    free(config);
    json_decref(root);
    return status;
}

int main(int argc, char **argv)
{
    k3_prog_start("mkckpt");
    settings s = {.seed = 1, .threads = k3_threads_default()};
    bool done;
    k3_err err = {0};
    int status = read_options(argc, argv, &s, &done, &err);
    if (!status && !done)
        status = run(&s, &err);
    if (status)
        status = k3_report_error(&err);
    return k3_prog_end(status);
}
