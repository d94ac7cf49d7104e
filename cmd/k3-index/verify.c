/* SPDX-License-Identifier: Apache-2.0 */
/* verify: read every byte; values, padding, checksums. */
#define _GNU_SOURCE
#include "index.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 16 << 20, BLOCK = 4096, PROBLEMS_MAX = 1000 };

/* What one read fetches: rows of a tensor, a part of an expert, or a piece of an ignored tensor. */
struct piece {
    uint64_t entry; /* k3_index_entry */
    uint64_t row0, rows;
    uint64_t offset, bytes;
    uint32_t shard;
};

struct finding {
    size_t piece;
    uint64_t nan, inf, e255, first; /* counts; offset of the first in the shard */
    k3_err *error;                  /* or what else is wrong */
};

struct verify {
    const k3_index *ix;
    const k3_sums *sums;
    k3_sums_writer *writer;
    struct piece *pieces;
    size_t npieces, largest;
    atomic_size_t next;
    _Atomic uint64_t done; /* bytes */
    uint64_t total;
    double start;
    pthread_mutex_t lock; /* of the findings */
    struct finding *findings;
    size_t nfindings, cap;
    atomic_bool no_memory;
    bool written;
};

/* ---- pieces --------------------------------------------------------------------- */

static bool add_piece(struct verify *v, struct piece p)
{
    if (v->npieces == v->cap) {
        struct piece *q = realloc(v->pieces, (v->cap = v->cap ? 2 * v->cap : 4096) * sizeof *q);
        if (!q)
            return false;
        v->pieces = q;
    }
    if (p.bytes > v->largest)
        v->largest = p.bytes;
    v->total += p.bytes;
    v->pieces[v->npieces++] = p;
    return true;
}

static bool add_entry(struct verify *v, uint64_t number, const k3_entry *e)
{
    struct piece p = {.entry = number, .offset = e->at.offset, .shard = e->at.shard, .rows = 1, .bytes = e->at.bytes};
    uint64_t rows = 1, row_bytes = e->at.bytes, step = 1;
    k3_tensor t;
    if (e->ignored) {
        row_bytes = 8; /* no value of ours straddles it */
        rows = (e->at.bytes + 7) / 8;
        step = PIECE / 8;
    } else if (e->id.expert < 0) {
        k3_schema_tensor(k3_index_config(v->ix), e->id.layer, (k3_tensor_id)e->id.tensor, &t);
        uint64_t unit = k3_sums_rows(&t);
        rows = t.rows;
        row_bytes = e->at.bytes / t.rows;
        step = PIECE / row_bytes / unit * unit;
        step = step < unit ? unit : step;
    }
    for (uint64_t r = 0; r < rows; r += step) {
        uint64_t left = e->at.bytes - r * row_bytes;
        p.row0 = r;
        p.rows = rows - r < step ? rows - r : step;
        p.offset = e->at.offset + r * row_bytes;
        p.bytes = p.rows * row_bytes < left ? p.rows * row_bytes : left;
        if (!add_piece(v, p))
            return false;
    }
    return true;
}

static int by_place(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    if (x->shard != y->shard)
        return x->shard < y->shard ? -1 : 1;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static int make_pieces(struct verify *v, k3_err *err)
{
    k3_entry e;
    for (uint64_t i = 0, n = k3_index_count(v->ix); i < n; i++) {
        k3_index_entry(v->ix, i, &e);
        if (e.at.bytes && !add_entry(v, i, &e))
            return k3_fail(err, K3_ESYS, "out of memory for the list of reads");
    }
    if (v->npieces)
        qsort(v->pieces, v->npieces, sizeof *v->pieces, by_place);
    v->cap = 0;
    return 0;
}

/* ---- reading -------------------------------------------------------------------- */

struct reader {
    int fd;
    bool direct;
    uint32_t shard;
    char *buf; /* aligned to BLOCK */
};

static int open_shard(struct reader *r, const k3_index *ix, uint32_t shard, bool direct, k3_err *err)
{
    const char *path = k3_index_shard_path(ix, shard);
    if (r->fd >= 0)
        close(r->fd);
    r->shard = shard;
    r->direct = direct;
    r->fd = direct ? open(path, O_RDONLY | O_CLOEXEC | O_DIRECT) : -1;
    if (r->fd < 0) {
        r->direct = false;
        r->fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    return r->fd < 0 ? k3_fail_errno(err, path, "cannot open") : 0;
}

/* Reads a piece past the page cache where the file system can; *data points at it. */
static int read_piece(struct reader *r, const k3_index *ix, const struct piece *p, char **data, k3_err *err)
{
    uint64_t from = p->offset / BLOCK * BLOCK, skip = p->offset - from, want = skip + p->bytes, done = 0;
    const char *name = k3_index_shard_name(ix, p->shard);
    int status = r->fd >= 0 && r->shard == p->shard ? 0 : open_shard(r, ix, p->shard, true, err);
    while (!status && done < want) {
        uint64_t n = (want - done + BLOCK - 1) / BLOCK * BLOCK;
        ssize_t got = pread(r->fd, r->buf + done, n < 1u << 30 ? n : 1u << 30, (off_t)(from + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EINVAL && r->direct)
            status = open_shard(r, ix, p->shard, false, err);
        else if (got < 0)
            status = k3_fail_errno(err, name, "cannot read %" PRIu64 " bytes at byte %" PRIu64, n, from + done);
        else if (!got)
            status = k3_fail_at(err, K3_EDATA, name, NULL, (int64_t)(from + done), "the file ends here, %" PRIu64 " bytes early",
                                want - done);
        else
            done += (uint64_t)got;
    }
    if (!status && !r->direct)
        posix_fadvise(r->fd, (off_t)p->offset, (off_t)p->bytes, POSIX_FADV_DONTNEED);
    *data = r->buf + skip;
    return status;
}

/* ---- values ----------------------------------------------------------------------- */

/* Counts words whose exponent bits are all ones; then tells NaN from infinity. */
#define COUNT_SPECIAL(word, exponent, fraction)                                                       \
    do {                                                                                              \
        uint64_t special = 0;                                                                         \
        word x;                                                                                       \
        for (uint64_t i = 0; i < bytes / sizeof x; i++) {                                             \
            memcpy(&x, data + i * sizeof x, sizeof x);                                                \
            special += (x & (exponent)) == (exponent);                                                \
        }                                                                                             \
        for (uint64_t i = 0; special && i < bytes / sizeof x; i++) {                                  \
            memcpy(&x, data + i * sizeof x, sizeof x);                                                \
            if ((x & (exponent)) != (exponent))                                                       \
                continue;                                                                             \
            if (!f->nan && !f->inf)                                                                   \
                f->first = i * sizeof x;                                                              \
            *(x & (fraction) ? &f->nan : &f->inf) += 1;                                               \
        }                                                                                             \
    } while (0)

static void count_bad(const k3_entry *e, const char *data, uint64_t bytes, struct finding *f)
{
    if (!strcmp(e->dtype, "BF16"))
        COUNT_SPECIAL(uint16_t, 0x7f80, 0x7f);
    else if (!strcmp(e->dtype, "F16"))
        COUNT_SPECIAL(uint16_t, 0x7c00, 0x3ff);
    else if (!strcmp(e->dtype, "F32"))
        COUNT_SPECIAL(uint32_t, 0x7f800000, 0x7fffff);
    if (e->ignored || e->id.expert < 0 || e->id.part % 2 == 0)
        return;
    const char *p = memchr(data, 255, bytes);
    f->first = p ? (uint64_t)(p - data) : f->first;
    for (uint64_t i = 0; p && i < bytes; i++)
        f->e255 += (uint8_t)data[i] == 255;
}

/* Checksums, written and compared, and the padding of A_log. */
static int check_sums(struct verify *v, const struct piece *p, const k3_entry *e, const char *data, k3_err *err)
{
    const k3_name *id = &e->id;
    int status = 0;
    if (e->ignored)
        return 0;
    if (id->expert >= 0) {
        if (v->writer)
            return k3_sums_put_part(v->writer, id->layer, (uint64_t)id->expert, (k3_part_id)id->part, data, err);
        return k3_sums_part(v->sums, id->layer, (uint64_t)id->expert, (k3_part_id)id->part, data, err);
    }
    if (id->tensor == K3_T_A_LOG)
        status = k3_a_log_check(v->ix, id->layer, data, p->bytes / 4, err);
    if (!status && v->writer)
        return k3_sums_put_tensor(v->writer, id->layer, (k3_tensor_id)id->tensor, p->row0, p->rows, data, err);
    return status ? status : k3_sums_tensor(v->sums, id->layer, (k3_tensor_id)id->tensor, p->row0, p->rows, data, err);
}

static void keep(struct verify *v, struct finding f, const k3_err *error)
{
    pthread_mutex_lock(&v->lock);
    if (v->nfindings == v->cap) {
        struct finding *q = realloc(v->findings, (v->cap = v->cap ? 2 * v->cap : 64) * sizeof *q);
        if (!q)
            v->no_memory = true;
        v->findings = q ? q : v->findings;
        v->cap = q ? v->cap : v->nfindings;
    }
    if (error && (f.error = malloc(sizeof *f.error)))
        *f.error = *error;
    if (error && !f.error)
        v->no_memory = true;
    if (v->nfindings < v->cap)
        v->findings[v->nfindings++] = f;
    else
        free(f.error);
    pthread_mutex_unlock(&v->lock);
}

static void check_piece(struct verify *v, struct reader *r, size_t number)
{
    const struct piece *p = &v->pieces[number];
    struct finding f = {.piece = number};
    k3_entry e;
    k3_err error;
    char *data;
    k3_index_entry(v->ix, p->entry, &e);
    int status = read_piece(r, v->ix, p, &data, &error);
    if (!status) {
        count_bad(&e, data, p->bytes, &f);
        status = check_sums(v, p, &e, data, &error);
    }
    if (status || f.nan || f.inf || f.e255)
        keep(v, f, status ? &error : NULL);
}

static void work(void *arg, int worker, int workers)
{
    struct verify *v = arg;
    struct reader r = {.fd = -1};
    (void)workers;
    if (posix_memalign((void **)&r.buf, BLOCK, v->largest + 2 * BLOCK)) {
        v->no_memory = true;
        return;
    }
    for (size_t i; !k3_interrupted && (i = atomic_fetch_add(&v->next, 1)) < v->npieces;) {
        check_piece(v, &r, i);
        uint64_t done = atomic_fetch_add(&v->done, v->pieces[i].bytes) + v->pieces[i].bytes;
        if (!worker)
            k3_progress_bytes("verified", done, v->total, v->start);
    }
    if (r.fd >= 0)
        close(r.fd);
    free(r.buf);
}

/* ---- report ------------------------------------------------------------------------- */

static int by_piece(const void *a, const void *b)
{
    const struct finding *x = a, *y = b;
    return (x->piece > y->piece) - (x->piece < y->piece);
}

static void describe_counts(const struct verify *v, const struct finding *f, k3_err *out)
{
    const struct piece *p = &v->pieces[f->piece];
    const char *shard = k3_index_shard_name(v->ix, p->shard);
    int64_t at = (int64_t)(p->offset + f->first);
    k3_entry e;
    k3_index_entry(v->ix, p->entry, &e);
    if (f->e255)
        k3_fail_at(out, K3_EDATA, shard, e.name, at, "%" PRIu64 " scale bytes are 255, which is NaN, the first", f->e255);
    else
        k3_fail_at(out, K3_EDATA, shard, e.name, at, "%" PRIu64 " NaN and %" PRIu64 " infinite values, the first", f->nan, f->inf);
}

/* One problem an error and one a tensor with odd values; list holds nfindings * 2. */
static size_t describe(const struct verify *v, k3_err *list)
{
    size_t n = 0;
    for (size_t i = 0, next; i < v->nfindings; i = next) {
        struct finding sum = v->findings[i];
        for (next = i; next < v->nfindings && v->pieces[v->findings[next].piece].entry == v->pieces[sum.piece].entry; next++) {
            const struct finding *f = &v->findings[next];
            if (f->error && n < PROBLEMS_MAX && (!n || strcmp(list[n - 1].text, f->error->text)))
                list[n++] = *f->error; /* a shard that cannot be opened is one problem, not one a tensor */
            if (next == i)
                continue;
            if (!sum.nan && !sum.inf && !sum.e255) {
                sum.piece = f->piece;
                sum.first = f->first;
            }
            sum.nan += f->nan;
            sum.inf += f->inf;
            sum.e255 += f->e255;
        }
        if ((sum.nan || sum.inf || sum.e255) && n < PROBLEMS_MAX)
            describe_counts(v, &sum, &list[n++]);
    }
    return n;
}

static int put_report(const struct verify *v, const index_opts *o, const k3_err *list, size_t n, k3_err *err)
{
    char a[32], b[24];
    const char *sums = v->written ? "written" : v->sums ? "compared" : "none";
    if (o->json)
        return put_json(json_pack("{s:I, s:I, s:s, s:I, s:o}", "tensors", (json_int_t)k3_index_count(v->ix), "bytes",
                                  (json_int_t)v->total, "checksums", sums, "count", (json_int_t)n, "problems",
                                  json_problems(list, n)),
                        err);
    for (size_t i = 0; i < n; i++) {
        put_text(list[i].text);
        putchar('\n');
    }
    if (!n)
        printf("%s tensors, %s read, checksums %s: no problems\n", with_commas(a, k3_index_count(v->ix)),
               k3_fmt_bytes(b, v->total), sums);
    return 0;
}

static int report(struct verify *v, const index_opts *o, k3_err *err)
{
    k3_err *list = malloc((PROBLEMS_MAX + 1) * sizeof *list);
    if (!list || v->no_memory) {
        free(list);
        return k3_fail(err, K3_ESYS, "out of memory");
    }
    if (v->nfindings)
        qsort(v->findings, v->nfindings, sizeof *v->findings, by_piece);
    size_t n = describe(v, list);
    int status = put_report(v, o, list, n, err), worst = n ? K3_EDATA : 0;
    for (size_t i = 0; i < n; i++)
        worst = list[i].status == K3_ESYS ? K3_ESYS : worst;
    if (!status && worst)
        status = k3_fail(err, worst, "%s: %zu%s problem%s%s", o->model, n, n == PROBLEMS_MAX ? " or more" : "",
                         n == 1 ? "" : "s", o->write_sums && !v->written ? "; no checksums written" : "");
    free(list);
    return status;
}

/* Odd values are what they are and get their checksums; a byte that could not be read does not. */
static bool sums_complete(const struct verify *v)
{
    bool complete = !v->no_memory;
    for (size_t i = 0; i < v->nfindings; i++)
        complete &= !v->findings[i].error;
    return complete;
}

static int run(struct verify *v, const index_opts *o, k3_err *err)
{
    char a[24];
    k3_pool *pool;
    int threads = o->threads ? o->threads : k3_threads_default() > 4 ? k3_threads_default() : 4; /* reads in flight */
    int status = make_pieces(v, err);
    if (!status)
        status = k3_pool_new(&pool, threads, err);
    if (status)
        return status;
    k3_catch_signals();
    v->start = k3_now();
    k3_pool_run(pool, work, v);
    k3_pool_free(pool);
    k3_progress_end();
    double t = k3_now() - v->start;
    if (k3_interrupted) {
        k3_sums_abort(&v->writer);
        k3_note("stopped after %s", k3_fmt_bytes(a, v->done));
        k3_die_by_signal();
    }
    k3_err failed;
    int commit = v->writer && sums_complete(v) ? k3_sums_commit(&v->writer, &failed) : 0;
    v->written = !commit && o->write_sums && !v->writer;
    status = report(v, o, err);
    if (commit) {
        *err = failed;
        status = commit;
    }
    k3_note("%s read in %.2f s, %.2f GB/s", k3_fmt_bytes(a, v->total), t, t > 0 ? (double)v->total / t / 1e9 : 0);
    return status;
}

int index_verify(const index_opts *o, k3_err *err)
{
    struct verify v = {.lock = PTHREAD_MUTEX_INITIALIZER};
    k3_index *ix = NULL;
    k3_sums *sums = NULL;
    int status = k3_index_open(&ix, o->model, o->index_file, err);
    v.ix = ix;
    if (!status && o->write_sums)
        status = k3_sums_create(&v.writer, ix, o->sums_file, err);
    else if (!status)
        status = k3_sums_open(&sums, ix, o->sums_file, err);
    v.sums = sums;
    if (!status)
        status = run(&v, o, err);
    for (size_t i = 0; i < v.nfindings; i++)
        free(v.findings[i].error);
    free(v.findings);
    free(v.pieces);
    k3_sums_abort(&v.writer);
    k3_sums_close(sums);
    k3_index_close(ix);
    return status;
}
