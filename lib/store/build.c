/* SPDX-License-Identifier: Apache-2.0 */
/* All headers, read in parallel, become one index image. */
#include "store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PROBLEMS_PER_SHARD = 20, TWICE_NAMED = 5 };

struct shard {
    struct image_shard info;
    struct header header;
    struct problems problems;
};

struct build {
    const char *dir;
    k3_config config;
    uint32_t nshards;
    struct shard *shard;
    atomic_uint next, done;
    double began;
    atomic_bool stop;      /* a build gives up at the first problem */
    bool check, headers_only;
    struct problems *problems;
    struct image_tensor *tensors; /* [layers + 1][K3_TENSORS] */
    uint64_t *parts;              /* [moe_layers][experts][K3_PARTS] place + 1; 0: not seen */
    uint64_t ntensors, nparts, nignored;
    uint64_t twice; /* tensors that are there twice */
};

static int no_memory(k3_err *err, const char *dir)
{
    return k3_fail(err, K3_ESYS, "%s: out of memory for the index", dir);
}

/* Digests of a sample of the weights; the header's records are in order of their offsets. */
static int sample_shard(const struct build *b, struct shard *s, int fd, k3_err *err)
{
    uint64_t stride = k3_sample_stride(&b->config);
    struct sampler sampler;
    int status = k3_sampler_open(&sampler, fd, s->info.name, err);
    if (status)
        return status;
    for (size_t i = 0; i < s->header.n && !status; i++) {
        const struct record *r = &s->header.records[i];
        bool part = r->tensor < 0;
        if (!r->ignored)
            status = k3_sampler_add(&sampler,
                                    &(struct sampled){s->info.header + r->begin, r->end - r->begin, part,
                                                      !part || r->expert % stride == 0},
                                    err);
    }
    k3_sampler_digests(&sampler, &s->info.sample, &s->info.quick);
    k3_sampler_close(&sampler);
    return status;
}

static void read_shard(struct build *b, struct shard *s)
{
    k3_err e;
    struct shard_file f;
    char *path = k3_path_join(b->dir, s->info.name);
    int status = path ? k3_shard_open(&f, path, s->info.name, &e) : no_memory(&e, b->dir);
    free(path);
    if (status) {
        k3_problems_add(&s->problems, &e);
        return;
    }
    s->info.size = (uint64_t)f.st.st_size;
    s->info.mtime = shard_time(f.st.st_mtim);
    s->info.ctime = shard_time(f.st.st_ctim);
    s->info.header = f.header;
    s->info.digest = f.digest;
    if (s->info.size >> PLACE_BITS)
        k3_problem(&s->problems, s->info.name, NULL, -1, "%" PRIu64 " bytes, at most 2^%d are supported", s->info.size, PLACE_BITS);
    else if (k3_header_parse(&s->header, &f, s->info.name, &b->config, &s->problems, &e))
        k3_problems_add(&s->problems, &e);
    else if (!b->headers_only && !s->problems.n && sample_shard(b, s, f.fd, &e))
        k3_problems_add(&s->problems, &e);
    k3_shard_close(&f);
}

/* On a terminal, of a job that takes seconds. */
static void show_progress(const struct build *b, uint32_t done)
{
    double seconds = k3_now() - b->began;
    if (seconds < 2 || !done)
        return;
    uint64_t left = (uint64_t)(seconds / done * (b->nshards - done) + 0.5);
    k3_progress(false, "%s: %" PRIu32 " of %" PRIu32 " shards read, %.1f/s, %" PRIu64 ":%02" PRIu64 " left", k3_prog, done, b->nshards,
                done / seconds, left / 60, left % 60);
}

static void read_shards(void *arg, int worker, int workers)
{
    struct build *b = arg;
    (void)workers;
    for (uint32_t i; !atomic_load(&b->stop) && (i = atomic_fetch_add(&b->next, 1)) < b->nshards;) {
        struct shard *s = &b->shard[i];
        s->problems.limit = b->check ? PROBLEMS_PER_SHARD : 1;
        read_shard(b, s);
        if (s->problems.n && !b->check)
            atomic_store(&b->stop, true);
        uint32_t done = atomic_fetch_add(&b->done, 1) + 1;
        if (!worker)
            show_progress(b, done);
    }
}

/* Moves the shards' problems to the common list, in shard order; true if there are any. */
static bool gather_problems(struct build *b)
{
    bool any = false;
    for (uint32_t i = 0; i < b->nshards; i++) {
        struct problems *p = &b->shard[i].problems;
        for (size_t k = 0; k < p->n; k++)
            k3_problems_add(b->problems, &p->list[k]);
        b->problems->more += p->more;
        any |= p->n > 0;
    }
    return any;
}

static void report_twice(struct build *b, const char *name, uint32_t first, uint32_t second)
{
    if (b->twice++ >= TWICE_NAMED)
        return;
    const char *a = b->shard[first].info.name, *z = b->shard[second].info.name;
    if (first == second)
        k3_problem(b->problems, z, name, -1, "is there twice");
    else
        k3_problem(b->problems, z, name, -1, "is also in %s", a);
}

/* Enters one shard's records in the tables; names that are taken are problems. */
static void enter(struct build *b, uint32_t number)
{
    struct shard *s = &b->shard[number];
    const k3_config *c = &b->config;
    char buf[K3_NAME_MAX];
    for (size_t i = 0; i < s->header.n; i++) {
        const struct record *r = &s->header.records[i];
        uint64_t place = place_of(number, s->info.header + r->begin), *slot, taken;
        if (r->ignored) {
            b->nignored++;
            continue;
        }
        if (r->tensor < 0) {
            slot = &b->parts[(((uint64_t)r->layer - c->first_moe) * c->experts + r->expert) * K3_PARTS + (uint64_t)r->part];
            taken = *slot ? *slot - 1 : PLACE_NONE;
        } else {
            struct image_tensor *t = &b->tensors[(size_t)(r->layer + 1) * K3_TENSORS + (size_t)r->tensor];
            slot = &t->place;
            taken = *slot;
            t->bytes = r->end - r->begin;
        }
        if (taken != PLACE_NONE) {
            report_twice(b, k3_record_name(&s->header, r, buf), place_shard(taken), number);
            continue;
        }
        *slot = r->tensor < 0 ? place + 1 : place;
        b->nparts += r->tensor < 0;
        b->ntensors += r->tensor >= 0;
    }
}

struct named {
    const char *name;
    uint32_t shard;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int d = strcmp(x->name, y->name);
    return d ? d : (x->shard > y->shard) - (x->shard < y->shard);
}

static int check_ignored(struct build *b, k3_err *err)
{
    struct named *list = malloc((b->nignored ? b->nignored : 1) * sizeof *list);
    size_t n = 0;
    if (!list)
        return no_memory(err, b->dir);
    for (uint32_t s = 0; s < b->nshards; s++)
        for (size_t i = 0; i < b->shard[s].header.nignored; i++)
            list[n++] = (struct named){b->shard[s].header.ignored[i].name, s};
    qsort(list, n, sizeof *list, by_name);
    for (size_t i = 1; i < n; i++)
        if (!strcmp(list[i - 1].name, list[i].name))
            report_twice(b, list[i].name, list[i - 1].shard, list[i].shard);
    free(list);
    return 0;
}

/* The first few missing names and how many there are. */
struct missing {
    char text[1200], first[K3_NAME_MAX];
    size_t len;
    uint64_t n;
};

static void miss(struct missing *m, const char *name)
{
    if (m->n == 0)
        snprintf(m->first, sizeof m->first, "%s", name);
    if (m->n++ < 5)
        m->len += (size_t)snprintf(m->text + m->len, sizeof m->text - m->len, m->len ? ", %s" : "%s", name);
}

static void check_missing(struct build *b)
{
    const k3_config *c = &b->config;
    struct missing m = {.n = 0};
    char buf[K3_NAME_MAX];
    for (int l = -1; l < (int)c->layers; l++)
        for (int id = 0; id < K3_TENSORS; id++)
            if (k3_schema_tensor(c, l, (k3_tensor_id)id, NULL) &&
                b->tensors[(size_t)(l + 1) * K3_TENSORS + (size_t)id].place == PLACE_NONE)
                miss(&m, k3_tensor_name(buf, l, (k3_tensor_id)id));
    uint64_t want = c->moe_layers * c->experts * K3_PARTS, lost = want - b->nparts;
    for (uint64_t i = 0; i < want && lost && m.n < 5; i++)
        if (!b->parts[i]) {
            uint64_t e = i / K3_PARTS;
            miss(&m, k3_part_name(buf, (int)(c->first_moe + e / c->experts), e % c->experts, (k3_part_id)(i % K3_PARTS)));
            lost--;
        }
    m.n += lost;
    if (!m.n)
        return;
    k3_err e;
    k3_fail_at(&e, K3_EDATA, b->dir, NULL, -1, "%" PRIu64 " tensors that the config needs are in no shard: %s%s", m.n, m.text,
               m.n > 5 ? ", ..." : "");
    snprintf(e.tensor, sizeof e.tensor, "%s", m.first);
    k3_problems_add(b->problems, &e);
}

static int tables(struct build *b, k3_err *err)
{
    const k3_config *c = &b->config;
    size_t n = (c->layers + 1) * K3_TENSORS;
    uint64_t parts = c->moe_layers * c->experts * K3_PARTS;
    b->tensors = malloc(n * sizeof *b->tensors);
    b->parts = calloc(parts ? parts : 1, sizeof *b->parts);
    if (!b->tensors || !b->parts)
        return k3_fail(err, K3_ESYS, "%s: out of memory for %" PRIu64 " layers of %" PRIu64 " experts", b->dir, c->moe_layers,
                       c->experts);
    for (size_t i = 0; i < n; i++)
        b->tensors[i] = (struct image_tensor){PLACE_NONE, 0};
    for (uint32_t s = 0; s < b->nshards; s++)
        enter(b, s);
    int status = check_ignored(b, err);
    if (b->twice > TWICE_NAMED)
        k3_problem(b->problems, b->dir, NULL, -1, "%" PRIu64 " more tensors are there twice", b->twice - TWICE_NAMED);
    return status;
}

/* Place of an expert's parts if each follows the one before, else PLACE_NONE. */
static uint64_t adjacent(const uint64_t *part, const uint64_t *bytes)
{
    for (int p = 1; p < K3_PARTS; p++)
        if (part[p] - part[p - 1] != bytes[p - 1] || place_shard(part[p] - 1) != place_shard(part[0] - 1))
            return PLACE_NONE;
    return part[0] - 1;
}

struct layout {
    struct section section[SECTIONS];
    uint64_t bytes;
};

static void *section_at(char *image, const struct layout *l, int s)
{
    return image + l->section[s].offset;
}

static void lay_out(const struct build *b, struct layout *l, uint64_t scattered)
{
    const k3_config *c = &b->config;
    uint64_t names = 0, shapes = 0, at = sizeof(struct image_head);
    for (uint32_t s = 0; s < b->nshards; s++)
        for (size_t i = 0; i < b->shard[s].header.nignored; i++) {
            names += strlen(b->shard[s].header.ignored[i].name) + 1;
            shapes += b->shard[s].header.ignored[i].rank;
        }
    const uint64_t bytes[SECTIONS] = {
        [S_SHARDS] = b->nshards * sizeof(struct image_shard),
        [S_TENSORS] = (c->layers + 1) * K3_TENSORS * sizeof(struct image_tensor),
        [S_EXPERTS] = c->moe_layers * c->experts * 8,
        [S_SCATTERED] = scattered * K3_PARTS * 8,
        [S_IGNORED] = b->nignored * sizeof(struct image_ignored),
        [S_SHAPES] = shapes * 8,
        [S_NAMES] = names,
    };
    for (int s = 0; s < SECTIONS; s++) {
        l->section[s] = (struct section){.offset = at, .bytes = bytes[s]};
        at += (bytes[s] + 7) / 8 * 8;
    }
    l->bytes = at + K3_INDEX_END_BYTES;
}

static void fill_experts(const struct build *b, char *image, const struct layout *l)
{
    const k3_config *c = &b->config;
    uint64_t *experts = section_at(image, l, S_EXPERTS), *row = section_at(image, l, S_SCATTERED), nrows = 0;
    uint64_t bytes[K3_PARTS];
    k3_part_sizes(c, bytes);
    for (uint64_t e = 0; e < c->moe_layers * c->experts; e++) {
        const uint64_t *part = b->parts + e * K3_PARTS;
        experts[e] = adjacent(part, bytes);
        if (experts[e] != PLACE_NONE)
            continue;
        experts[e] = EXPERT_SCATTERED | nrows++;
        for (int p = 0; p < K3_PARTS; p++)
            *row++ = part[p] - 1;
    }
}

static void fill_ignored(const struct build *b, char *image, const struct layout *l)
{
    struct image_ignored *out = section_at(image, l, S_IGNORED);
    uint64_t *shapes = section_at(image, l, S_SHAPES), nshapes = 0, nnames = 0;
    char *names = section_at(image, l, S_NAMES);
    for (uint32_t s = 0; s < b->nshards; s++) {
        const struct header *h = &b->shard[s].header;
        for (size_t i = 0; i < h->n; i++) {
            const struct record *r = &h->records[i];
            if (!r->ignored)
                continue;
            const struct ignored *g = &h->ignored[r->expert];
            size_t len = strlen(g->name) + 1;
            *out++ = (struct image_ignored){.name = nnames, .shape = nshapes, .rank = g->rank, .dtype = (uint64_t)g->dtype,
                                            .place = place_of(s, b->shard[s].info.header + r->begin), .bytes = r->end - r->begin};
            memcpy(names + nnames, g->name, len);
            memcpy(shapes + nshapes, g->shape, g->rank * sizeof *shapes);
            nnames += len;
            nshapes += g->rank;
        }
    }
}

static int fill(const struct build *b, k3_index *ix, k3_err *err)
{
    const k3_config *c = &b->config;
    struct layout l;
    uint64_t scattered = 0, bytes[K3_PARTS];
    k3_part_sizes(c, bytes);
    for (uint64_t e = 0; e < c->moe_layers * c->experts; e++)
        scattered += adjacent(b->parts + e * K3_PARTS, bytes) == PLACE_NONE;
    lay_out(b, &l, scattered);
    char *image = calloc(1, l.bytes);
    if (!image)
        return no_memory(err, b->dir);
    ix->image = image;
    ix->image_bytes = l.bytes;
    struct image_shard *shards = section_at(image, &l, S_SHARDS);
    for (uint32_t s = 0; s < b->nshards; s++)
        shards[s] = b->shard[s].info;
    memcpy(section_at(image, &l, S_TENSORS), b->tensors, l.section[S_TENSORS].bytes);
    fill_experts(b, image, &l);
    fill_ignored(b, image, &l);
    struct image_head *head = (struct image_head *)image;
    *head = (struct image_head){.magic = K3_INDEX_MAGIC, .version = K3_INDEX_VERSION, .head_bytes = sizeof *head,
                                .file_bytes = l.bytes, .layers = (uint32_t)c->layers, .tensors_per_layer = K3_TENSORS,
                                .moe_layers = c->moe_layers, .experts = c->experts,
                                .entries = b->ntensors + b->nparts + b->nignored};
    memcpy(head->section, l.section, sizeof l.section);
    for (int s = 0; s < SECTIONS; s++)
        head->section[s].sum = k3_section_sum(image, &l.section[s]);
    head->config = k3_config_digest(c);
    head->fingerprint = k3_index_digest(head->config, shards, b->nshards);
    head->sum = XXH3_64bits(head, offsetof(struct image_head, sum));
    memcpy(image + l.bytes - K3_INDEX_END_BYTES, K3_INDEX_END, K3_INDEX_END_BYTES);
    return k3_index_attach(ix, b->dir, err);
}

int k3_a_log_check(const k3_index *ix, int layer, const void *stored, uint64_t count, k3_err *err)
{
    char name[K3_NAME_MAX];
    k3_extent at;
    for (uint64_t i = ix->config.kda_heads; i < count; i++) {
        float value;
        memcpy(&value, (const char *)stored + 4 * i, sizeof value); /* a shard's data may lie at any address */
        if (value != 0) {
            k3_index_tensor(ix, layer, K3_T_A_LOG, &at);
            return k3_fail_at(err, K3_EDATA, k3_index_shard_name(ix, at.shard), k3_tensor_name(name, layer, K3_T_A_LOG),
                              (int64_t)(at.offset + i * 4),
                              "entry %" PRIu64 " is %g, but only the first %" PRIu64 " are heads and the rest must be 0", i,
                              (double)value, ix->config.kda_heads);
        }
    }
    return 0;
}

/* One layer's A_log; layers stored without a tail are fine as they are. */
static int check_a_log(const k3_index *ix, int layer, k3_err *err)
{
    k3_extent at;
    uint64_t bytes = k3_index_stored_bytes(ix, layer, K3_T_A_LOG);
    if (!k3_index_tensor(ix, layer, K3_T_A_LOG, &at) || bytes == at.bytes)
        return 0;
    float *stored = malloc(bytes);
    if (!stored)
        return no_memory(err, ix->dir);
    int status = 0, fd = open(k3_index_shard_path(ix, at.shard), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        status = k3_fail_errno(err, k3_index_shard_name(ix, at.shard), "cannot open");
    if (!status)
        status = k3_pread_full(fd, k3_index_shard_name(ix, at.shard), stored, bytes, at.offset, err);
    if (!status)
        status = k3_a_log_check(ix, layer, stored, bytes / 4, err);
    if (fd >= 0)
        close(fd);
    free(stored);
    return status;
}

static int load(struct build *b, int threads, k3_err *err)
{
    struct shard_list list;
    k3_pool *pool = NULL;
    int status = k3_shards_find(b->dir, &list, b->problems, err);
    if (!status && (!b->problems->n || b->check)) {
        b->shard = calloc(list.n ? list.n : 1, sizeof *b->shard);
        status = b->shard ? k3_pool_new(&pool, threads, err) : no_memory(err, b->dir);
    }
    if (!status && b->shard) {
        b->nshards = list.n;
        for (uint32_t i = 0; i < list.n; i++)
            memcpy(b->shard[i].info.name, list.name[i], sizeof list.name[i]);
        b->began = k3_now();
        k3_pool_run(pool, read_shards, b);
        k3_progress_end();
    }
    k3_pool_free(pool);
    k3_shards_free(&list);
    return status;
}

/* Everything up to a finished index; without one and with status 0 there are problems. */
static int build(struct build *b, int threads, k3_index **out, k3_err *err)
{
    k3_index *ix = NULL;
    int status = k3_config_load(b->dir, &b->config, err);
    if (!status)
        status = load(b, threads, err);
    if (status || (b->problems->n && !b->check))
        return status;
    bool broken = gather_problems(b) || b->problems->n;
    if (broken && !b->check)
        return 0;
    if ((status = tables(b, err)))
        return status;
    if (!broken)
        check_missing(b);
    if (b->problems->n)
        return 0;
    if (!(ix = calloc(1, sizeof *ix)) || !(ix->dir = strdup(b->dir))) {
        status = no_memory(err, b->dir);
        goto done;
    }
    ix->config = b->config;
    if ((status = fill(b, ix, err)))
        goto done;
    for (int l = 0; l < (int)b->config.layers && !b->headers_only; l++) {
        k3_err e;
        if (check_a_log(ix, l, &e) && k3_problems_add(b->problems, &e))
            break;
    }
    if (!b->problems->n) {
        *out = ix;
        ix = NULL;
    }
done:
    k3_index_close(ix);
    return status;
}

static int run(const char *dir, int threads, bool check, bool headers_only, struct problems *problems, k3_index **out,
               k3_err *err)
{
    struct build *b = calloc(1, sizeof *b);
    *out = NULL;
    if (!b)
        return no_memory(err, dir);
    b->dir = dir;
    b->check = check;
    b->headers_only = headers_only;
    b->problems = problems;
    int status = build(b, threads, out, err);
    for (uint32_t i = 0; i < b->nshards; i++) {
        k3_header_free(&b->shard[i].header);
        k3_problems_free(&b->shard[i].problems);
    }
    free(b->shard);
    free(b->tensors);
    free(b->parts);
    free(b);
    return status;
}

int k3_index_build_all(k3_index **out, const char *dir, int threads, struct problems *p, k3_err *err)
{
    return run(dir, threads, true, false, p, out, err);
}

int k3_index_build_headers(k3_index **out, const char *dir, int threads, struct problems *p, k3_err *err)
{
    return run(dir, threads, true, true, p, out, err);
}

int k3_index_build(k3_index **out, const char *dir, int threads, k3_err *err)
{
    struct problems p = {.limit = 1};
    int status = run(dir, threads, false, false, &p, out, err);
    if (!status && p.n) {
        *err = p.list[0];
        status = err->status;
    }
    k3_problems_free(&p);
    return status;
}
