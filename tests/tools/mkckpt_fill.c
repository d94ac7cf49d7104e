/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the tensors: values drawn by counter, so that any range of any
 * tensor can be written by any thread, in any order, with the same bytes. */
#define _GNU_SOURCE
#include "mkckpt.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which law -------------------------------------------------------------- */

/* Rows of embedding and head that are real in a sparse checkpoint: prompts of
 * ordinary ids and the specials have an embedding, and some rows of the head,
 * all of ids that have an embedding, compete to be the next token. */
static void sparse_rows(const k3_tensor *k, int id, tensor *t)
{
    uint64_t row = k->cols * k3_dtype_size[k->dtype], v = k->rows, some = v / 5, few = v < 4096 ? v / 64 + 1 : 64;
    uint64_t specials = v > 512 ? 256 : v / 8;
    if (id == K3_T_EMBED) {
        t->spans[0] = (span){0, some * row};
        t->spans[1] = (span){(v - specials) * row, specials * row};
        t->nspans = 2;
        return;
    }
    for (uint64_t i = 0; i < MAX_SPANS; i++)
        t->spans[i] = (span){some * i / MAX_SPANS * row, few * row};
    t->nspans = some / MAX_SPANS >= few ? MAX_SPANS : 1;
}

static bool is_norm(const k3_tensor *k)
{
    static const char tail[] = "norm.weight";
    size_t n = strlen(k->name);
    return n >= sizeof tail - 1 && !strcmp(k->name + n - (sizeof tail - 1), tail);
}

static void set_law(tensor *t, law l, double a, double b)
{
    t->law = l;
    t->a = a;
    t->b = b;
}

/* Deviations keep every product near 1: inputs of a matrix are normed, so that
 * gates, decay and routing scores move and the residual stream grows slowly. */
static void full_law(const maker *m, const k3_tensor *k, int id, tensor *t)
{
    double one = 1 / sqrt((double)k->cols);
    switch (id) {
    case K3_T_Q_CONV: case K3_T_K_CONV: case K3_T_V_CONV:
        set_law(t, LAW_NORMAL, 0.5, 0);
        return;
    case K3_T_A_LOG:
        set_law(t, LAW_UNIFORM, -0.7, 0.9);
        return;
    case K3_T_DT_BIAS:
        set_law(t, LAW_UNIFORM, -5, 1);
        return;
    case K3_T_ROUTER_BIAS:
        set_law(t, LAW_NORMAL, 0.05, 0);
        return;
    case K3_T_EMBED:
        set_law(t, LAW_NORMAL, 1, 0);
        return;
    case K3_T_G: case K3_T_O: case K3_T_ATTN_RES_PROJ: case K3_T_MLP_RES_PROJ: case K3_T_OUT_RES_PROJ:
        set_law(t, LAW_NORMAL, one, 0);
        return;
    }
    if (is_norm(k))
        set_law(t, m->mode == DATA_SPARSE ? LAW_ONE : LAW_UNIFORM, 0.5, 1.5);
    else
        set_law(t, LAW_NORMAL, 1.5 * one, 0);
}

void choose_data(const maker *m, const k3_tensor *k, int id, tensor *t)
{
    bool routes = id == K3_T_ROUTER || id == K3_T_EMBED || id == K3_T_HEAD;
    bool conv = id == K3_T_Q_CONV || id == K3_T_K_CONV || id == K3_T_V_CONV;
    if (m->mode == DATA_NONE || (m->mode == DATA_SPARSE && (id < 0 || conv || (k->use == K3_USE_MATRIX && !routes))))
        return;
    t->spans[0] = (span){0, t->bytes};
    t->nspans = 1;
    if (id >= 0) {
        full_law(m, k, id, t);
        if (m->mode == DATA_SPARSE && (id == K3_T_EMBED || id == K3_T_HEAD))
            sparse_rows(k, id, t);
    } else if (strstr(k->name, "_scale")) {
        /* Any code is as likely as any other: a deviation of 2.93, brought to 1.3 / sqrt(inputs). */
        set_law(t, LAW_SCALE, log2(1.3 / 2.926 / sqrt((double)k->cols * 32)), 0);
    } else {
        set_law(t, LAW_BYTES, 0, 0);
    }
}

/* ---- values -------------------------------------------------------------------- */

enum { TABLE = 8192 };

/* A worker's table of the values that the tensor at hand takes with equal chance. */
typedef struct table {
    const float *normal; /* [TABLE] quantiles of the normal distribution */
    law law;
    k3_dtype dtype;
    double a, b;
    union {
        float f32[TABLE];
        uint16_t bf16[TABLE];
        uint8_t u8[256];
    };
} table;

static void normal_quantiles(float *q)
{
    double x = -3.9;
    for (int i = 0; i < TABLE; i++) {
        double p = (i + 0.5) / TABLE;
        /* Newton from the quantile before: the curve is smooth, a few steps are plenty. */
        for (int step = 0; step < 12; step++)
            x -= (0.5 * erfc(-x * M_SQRT1_2) - p) / (exp(-x * x / 2) * 0.5 * M_2_SQRTPI * M_SQRT1_2);
        q[i] = (float)x;
    }
}

static uint16_t to_bf16(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static void set_table(table *b, const tensor *t)
{
    if (b->law == t->law && b->dtype == t->dtype && b->a == t->a && b->b == t->b)
        return;
    b->law = t->law;
    b->dtype = t->dtype;
    b->a = t->a;
    b->b = t->b;
    for (int i = 0; i < 256 && t->law == LAW_SCALE; i++) {
        double e = floor(127 + t->a + (i + 0.5) / 128 - 0.5);
        b->u8[i] = (uint8_t)(e < 1 ? 1 : e > 254 ? 254 : e);
    }
    for (int i = 0; i < TABLE && t->dtype != K3_U8; i++) {
        double x = t->law == LAW_ONE ? 1 : t->law == LAW_NORMAL ? t->a * b->normal[i] : t->a + (t->b - t->a) * (i + 0.5) / TABLE;
        if (t->dtype == K3_F32)
            b->f32[i] = (float)x;
        else
            b->bf16[i] = to_bf16((float)x);
    }
}

/* Words [first, first + n) of the tensor's data; `out` need not be aligned. */
static void words(const table *b, const tensor *t, uint64_t first, uint64_t n, uint8_t *out)
{
    uint64_t x = t->seed + first * UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t i = 0; i < n; i++, x += UINT64_C(0x9e3779b97f4a7c15)) {
        uint64_t r = mix(x), w = r;
        if (t->dtype == K3_BF16) {
            w = b->bf16[r % TABLE];
            w |= (uint64_t)b->bf16[(r >> 16) % TABLE] << 16;
            w |= (uint64_t)b->bf16[(r >> 32) % TABLE] << 32;
            w |= (uint64_t)b->bf16[(r >> 48) % TABLE] << 48;
        } else if (t->dtype == K3_F32) {
            memcpy(out + 8 * i, &b->f32[r % TABLE], 4);
            memcpy(out + 8 * i + 4, &b->f32[(r >> 32) % TABLE], 4);
            continue;
        } else if (t->law == LAW_SCALE) {
            w = 0;
            for (int k = 0; k < 64; k += 8)
                w |= (uint64_t)b->u8[r >> k & 255] << k;
        }
        memcpy(out + 8 * i, &w, 8);
    }
}

/* Bytes [at, at + n) of a tensor. */
static void fill(table *b, const tensor *t, uint64_t at, uint64_t n, uint8_t *out)
{
    uint8_t edge[8];
    uint64_t skip = at % 8, end = at + n;
    set_table(b, t);
    for (uint64_t p = at; p < end;) {
        uint64_t whole = skip ? 0 : (end - p) / 8, len = whole * 8;
        if (whole) {
            words(b, t, p / 8, whole, out + (p - at));
        } else {
            len = 8 - skip < end - p ? 8 - skip : end - p;
            words(b, t, p / 8, 1, edge);
            memcpy(out + (p - at), edge + skip, len);
            skip = 0;
        }
        p += len;
    }
    if (end > t->live)
        memset(out + (at < t->live ? t->live - at : 0), 0, end - (at < t->live ? t->live : at));
}

/* ---- writing -------------------------------------------------------------------------- */

enum { JOB = 8 << 20, PAGE = 4096 };

/* A contiguous piece of a file, beginning in tensor `first`. */
typedef struct job {
    uint32_t shard, first;
    uint64_t begin, bytes; /* in the file */
} job;

typedef struct writer {
    const maker *m;
    job *jobs;
    size_t n, cap;
    atomic_size_t next;
    float normal[TABLE];
    pthread_mutex_t lock;
    k3_err *err;
    int status;
} writer;

uint64_t real_bytes(const maker *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->nshards; i++)
        for (size_t k = 0; k < m->shards[i].n; k++)
            for (int s = 0; s < m->shards[i].t[k].nspans; s++)
                sum += m->shards[i].t[k].spans[s].bytes;
    return sum;
}

/* Appends a range, joined to the last job or cut at multiples of JOB. */
static bool add_range(writer *w, uint32_t file, uint32_t first, uint64_t begin, uint64_t bytes)
{
    while (bytes) {
        job *last = w->n ? &w->jobs[w->n - 1] : NULL;
        uint64_t room = JOB - begin % JOB, take = bytes < room ? bytes : room;
        if (last && last->shard == file && last->begin + last->bytes == begin && begin % JOB) {
            last->bytes += take;
        } else {
            if (w->n == w->cap) {
                w->cap = w->cap ? w->cap * 2 : 1024;
                job *grown = realloc(w->jobs, w->cap * sizeof *grown);
                if (!grown)
                    return false;
                w->jobs = grown;
            }
            w->jobs[w->n++] = (job){file, first, begin, take};
        }
        begin += take;
        bytes -= take;
    }
    return true;
}

static bool list_jobs(writer *w)
{
    for (size_t i = 0; i < w->m->nshards; i++) {
        const shard *s = &w->m->shards[i];
        for (size_t k = 0; k < s->n; k++)
            for (int p = 0; p < s->t[k].nspans; p++)
                if (!add_range(w, (uint32_t)i, (uint32_t)k, s->header + s->t[k].begin + s->t[k].spans[p].begin,
                               s->t[k].spans[p].bytes))
                    return false;
    }
    return true;
}

static void fill_job(const shard *s, const job *j, table *b, uint8_t *buf)
{
    uint64_t done = 0;
    for (const tensor *t = &s->t[j->first]; done < j->bytes; t++) {
        uint64_t at = j->begin + done - s->header - t->begin, n = t->bytes - at;
        n = n < j->bytes - done ? n : j->bytes - done;
        fill(b, t, at, n, buf + done);
        done += n;
    }
}

static int write_range(const char *path, int flags, const uint8_t *buf, uint64_t begin, uint64_t end, k3_err *err)
{
    if (begin >= end)
        return 0;
    int status = 0, fd = open(path, O_WRONLY | O_CLOEXEC | flags);
    if (fd < 0 && flags)
        fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return k3_fail_errno(err, path, "cannot open");
    for (uint64_t at = begin; at < end && !status;) {
        ssize_t n = pwrite(fd, buf + (at - begin), end - at, (off_t)at);
        if (n < 0 && errno == EINVAL && flags)
            flags = fcntl(fd, F_SETFL, 0);
        else if (n <= 0)
            status = k3_fail_errno(err, path, "cannot write");
        else
            at += (uint64_t)n;
    }
    if (close(fd) && !status)
        status = k3_fail_errno(err, path, "cannot write");
    return status;
}

/* Whole pages go past the page cache where the file system allows it: filling
 * memory with pages that nobody reads soon can cost more than the disk.
 * buf is aligned as the file is: its first byte is that of the job's first page. */
static int write_job(const shard *s, const job *j, const uint8_t *buf, k3_err *err)
{
    uint64_t base = j->begin / PAGE * PAGE, end = j->begin + j->bytes, last = end / PAGE * PAGE;
    uint64_t first = j->begin % PAGE ? base + PAGE : base;
    if (first >= last)
        return write_range(s->path, 0, buf + (j->begin - base), j->begin, end, err);
    int status = write_range(s->path, 0, buf + (j->begin - base), j->begin, first, err);
    if (!status)
        status = write_range(s->path, O_DIRECT, buf + (first - base), first, last, err);
    if (!status)
        status = write_range(s->path, 0, buf + (last - base), last, end, err);
    return status;
}

static void write_jobs(void *arg, int worker, int workers)
{
    writer *w = arg;
    k3_err err = {0};
    table *b = calloc(1, sizeof *b);
    uint8_t *buf = aligned_alloc(PAGE, JOB + PAGE);
    int status = b && buf ? 0 : k3_fail(&err, K3_ESYS, "out of memory for writer %d of %d", worker + 1, workers);
    if (b)
        b->normal = w->normal;
    for (size_t i; !status && (i = atomic_fetch_add(&w->next, 1)) < w->n;) {
        const job *j = &w->jobs[i];
        fill_job(&w->m->shards[j->shard], j, b, buf + j->begin % PAGE);
        status = write_job(&w->m->shards[j->shard], j, buf, &err);
    }
    if (status) {
        atomic_store(&w->next, w->n);
        pthread_mutex_lock(&w->lock);
        if (!w->status) {
            w->status = status;
            *w->err = err;
        }
        pthread_mutex_unlock(&w->lock);
    }
    free(b);
    free(buf);
}

int write_data(const maker *m, k3_pool *pool, k3_err *err)
{
    writer *w = calloc(1, sizeof *w);
    if (!w)
        return k3_fail(err, K3_ESYS, "out of memory");
    w->m = m;
    w->err = err;
    pthread_mutex_init(&w->lock, NULL);
    int status = list_jobs(w) ? 0 : k3_fail(err, K3_ESYS, "out of memory for the list of writes");
    if (!status) {
        normal_quantiles(w->normal);
        k3_pool_run(pool, write_jobs, w);
        status = w->status;
    }
    pthread_mutex_destroy(&w->lock);
    free(w->jobs);
    free(w);
    return status;
}
