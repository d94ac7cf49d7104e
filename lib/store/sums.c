/* SPDX-License-Identifier: Apache-2.0 */
/* k3.sums: one XXH3-64 for every unit that is ever read at once. */
#include "store.h"
#include "wide_xxh3.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUMS_MAGIC "K3SUMS\0"
#define SUMS_END "K3SUMS-END\n\0\0\0\0"
enum { SUMS_VERSION = 1, END_BYTES = 16, BATCH = 512 };

/* The file: this head; layers + 1 checksums of the sections below; the checksum of all
 * before it; a section for embedding and head and one for each layer; the end mark. */
struct sums_head {
    char magic[8];
    uint32_t version, layers;
    uint64_t file_bytes;
    k3_fingerprint model;
};

/* Where the sums are: base[(layer + 1) * (K3_TENSORS + 2) + id] is the number, from the start
 * of the sections, of a tensor's first sum; [K3_TENSORS] of the experts'; [K3_TENSORS + 1] the section's end. */
struct layout {
    uint64_t *base;
    uint64_t start, nsums, file_bytes;
};

struct k3_sums {
    const k3_index *ix;
    struct layout at;
    int fd;
    char *path;
    char *head;              /* the file up to the first section */
    const uint64_t *section; /* in it: the sections' checksums */
};

struct k3_sums_writer {
    const k3_index *ix;
    struct layout at;
    k3_file *file;
    char *path;
};

static uint64_t *row(const struct layout *l, int layer)
{
    return l->base + (size_t)(layer + 1) * (K3_TENSORS + 2);
}

uint64_t k3_sums_rows(const k3_tensor *t)
{
    return t->use == K3_USE_VECTOR ? t->rows : t->group;
}

static int lay_out(struct layout *l, const k3_config *c, k3_err *err)
{
    uint64_t n = 0;
    if (!(l->base = malloc((c->layers + 1) * (K3_TENSORS + 2) * sizeof *l->base)))
        return k3_fail(err, K3_ESYS, "out of memory for the checksums' places");
    for (int layer = -1; layer < (int)c->layers; layer++) {
        uint64_t *base = row(l, layer);
        for (int id = 0; id < K3_TENSORS; id++) {
            k3_tensor t;
            base[id] = n;
            if (k3_schema_tensor(c, layer, (k3_tensor_id)id, &t))
                n += (t.rows + k3_sums_rows(&t) - 1) / k3_sums_rows(&t);
        }
        base[K3_TENSORS] = n;
        if (layer >= 0 && k3_is_moe(c, (uint64_t)layer))
            n += c->experts * K3_PARTS;
        base[K3_TENSORS + 1] = n;
    }
    l->nsums = n;
    l->start = sizeof(struct sums_head) + (c->layers + 1) * 8 + 8;
    l->file_bytes = l->start + n * 8 + END_BYTES;
    return 0;
}

/* ---- reading -------------------------------------------------------------------------- */

static int damaged(const k3_sums *s, int64_t at, k3_err *err, const char *what)
{
    return k3_fail_at(err, K3_EDATA, s->path, NULL, at, "%s; write it anew with k3-index verify --write-sums", what);
}

/* The file up to the first section: its checksum is its last word. */
static uint64_t head_sum(const struct layout *l, const char *head)
{
    return XXH3_64bits(head, l->start - 8);
}

static int check_head(const k3_sums *s, uint64_t size, k3_err *err)
{
    struct sums_head h;
    memcpy(&h, s->head, sizeof h);
    if (memcmp(h.magic, SUMS_MAGIC, 8))
        return damaged(s, 0, err, "not a file of checksums");
    if (h.version != SUMS_VERSION)
        return k3_fail_at(err, K3_EDATA, s->path, NULL, 8, "version %" PRIu32 ", this program reads %d; write it anew", h.version,
                          SUMS_VERSION);
    if (!k3_fingerprint_equal(h.model, k3_index_fingerprint(s->ix)))
        return damaged(s, 24, err, "made for other weights or another model (if nothing was changed on purpose, a shard is damaged)");
    if (h.layers != s->ix->config.layers || h.file_bytes != s->at.file_bytes)
        return damaged(s, 12, err, "its head does not fit the model");
    if (size != h.file_bytes)
        return k3_fail_at(err, K3_EDATA, s->path, NULL, -1, "%" PRIu64 " bytes, its head says %" PRIu64 "; write it anew", size,
                          h.file_bytes);
    if (s->section[h.layers + 1] != head_sum(&s->at, s->head))
        return damaged(s, 0, err, "the head's checksum does not match");
    return 0;
}

static int read_head(k3_sums *s, k3_err *err)
{
    char end[END_BYTES];
    off_t size = lseek(s->fd, 0, SEEK_END);
    if (size < 0)
        return k3_fail_errno(err, s->path, "cannot seek");
    if ((uint64_t)size < s->at.start + END_BYTES)
        return damaged(s, size, err, "not a whole file of checksums: too short");
    if (!(s->head = malloc(s->at.start)))
        return k3_fail(err, K3_ESYS, "%s: out of memory", s->path);
    s->section = (const uint64_t *)(s->head + sizeof(struct sums_head));
    int status = k3_pread_full(s->fd, s->path, s->head, s->at.start, 0, err);
    if (!status)
        status = check_head(s, (uint64_t)size, err);
    if (!status)
        status = k3_pread_full(s->fd, s->path, end, END_BYTES, s->at.file_bytes - END_BYTES, err);
    if (!status && memcmp(end, SUMS_END, END_BYTES))
        status = damaged(s, (int64_t)(s->at.file_bytes - END_BYTES), err, "the end mark is missing");
    return status;
}

/* The checksum of one layer's sums, as they are in the file. */
static int layer_sum(const struct layout *l, int fd, const char *path, int layer, uint64_t *sum, k3_err *err)
{
    const uint64_t *base = row(l, layer);
    uint64_t bytes = (base[K3_TENSORS + 1] - base[0]) * 8;
    char *buf = malloc(bytes ? bytes : 1);
    if (!buf)
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    int status = k3_pread_full(fd, path, buf, bytes, l->start + base[0] * 8, err);
    if (!status)
        *sum = XXH3_64bits(buf, bytes);
    free(buf);
    return status;
}

int k3_sums_open(k3_sums **out, const k3_index *ix, const char *path, k3_err *err)
{
    *out = NULL;
    k3_sums *s = calloc(1, sizeof *s);
    if (!s || (s->fd = -1, !(s->path = path ? strdup(path) : k3_sidecar_find(ix->dir, "k3.sums")))) {
        free(s);
        return k3_fail(err, K3_ESYS, "%s: out of memory", ix->dir);
    }
    s->ix = ix;
    s->fd = open(s->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int status = 0;
    if (s->fd < 0 && (path || errno != ENOENT))
        status = k3_fail_errno(err, s->path, "cannot open");
    else if (s->fd >= 0 && !(status = lay_out(&s->at, &ix->config, err)))
        status = read_head(s, err);
    if (s->fd >= 0 && !status)
        *out = s;
    else
        k3_sums_close(s);
    return status;
}

void k3_sums_close(k3_sums *s)
{
    if (!s)
        return;
    if (s->fd >= 0)
        close(s->fd);
    free(s->at.base);
    free(s->head);
    free(s->path);
    free(s);
}

/* After a mismatch: is it the sidecar that is wrong? Its section's checksum tells. */
static int check_section(const k3_sums *s, int layer, k3_err *err)
{
    uint64_t sum = 0;
    int status = layer_sum(&s->at, s->fd, s->path, layer, &sum, err);
    if (!status && sum != s->section[layer + 1])
        status = damaged(s, (int64_t)(s->at.start + row(&s->at, layer)[0] * 8), err, "a section's checksum does not match");
    return status;
}

static int mismatch(const k3_sums *s, int layer, const char *name, k3_extent at, uint64_t want, uint64_t got, k3_err *err)
{
    int status = check_section(s, layer, err);
    if (status)
        return status;
    return k3_fail_at(err, K3_EDATA, k3_index_shard_name(s->ix, at.shard), name, (int64_t)at.offset,
                      "%" PRIu64 " bytes have checksum %016" PRIx64 ", k3.sums says %016" PRIx64, at.bytes, got, want);
}

int k3_sums_tensor(const k3_sums *s, int layer, k3_tensor_id id, uint64_t row0, uint64_t rows, const void *data, k3_err *err)
{
    char name[K3_NAME_MAX];
    const char *p = data;
    uint64_t sums[BATCH];
    k3_tensor t;
    if (!s || !k3_schema_tensor(&s->ix->config, layer, id, &t))
        return 0;
    uint64_t unit = k3_sums_rows(&t), row_bytes = t.bytes / t.rows, first = row(&s->at, layer)[id] + row0 / unit;
    uint64_t n = (rows + unit - 1) / unit;
    for (uint64_t i = 0; i < n; i++) {
        if (i % BATCH == 0) {
            uint64_t batch = n - i < BATCH ? n - i : BATCH;
            int status = k3_pread_full(s->fd, s->path, sums, batch * 8, s->at.start + (first + i) * 8, err);
            if (status)
                return status;
        }
        uint64_t here = rows - i * unit < unit ? rows - i * unit : unit, bytes = here * row_bytes;
        uint64_t got = XXH3_64bits(p, bytes);
        if (got != sums[i % BATCH]) {
            k3_extent at;
            k3_index_tensor(s->ix, layer, id, &at);
            at.offset += (row0 + i * unit) * row_bytes;
            at.bytes = bytes;
            return mismatch(s, layer, k3_tensor_name(name, layer, id), at, sums[i % BATCH], got, err);
        }
        p += bytes;
    }
    return 0;
}

int k3_sums_part(const k3_sums *s, int layer, uint64_t expert, k3_part_id part, const void *data, k3_err *err)
{
    char name[K3_NAME_MAX];
    uint64_t want, got;
    k3_extent at[K3_PARTS];
    if (!s)
        return 0;
    uint64_t number = row(&s->at, layer)[K3_TENSORS] + expert * K3_PARTS + part;
    int status = k3_pread_full(s->fd, s->path, &want, 8, s->at.start + number * 8, err);
    if (status || (got = XXH3_64bits(data, s->ix->part_bytes[part])) == want)
        return status;
    k3_index_expert(s->ix, layer, expert, at);
    return mismatch(s, layer, k3_part_name(name, layer, expert, part), at[part], want, got, err);
}

int k3_sums_expert(const k3_sums *s, int layer, uint64_t expert, const void *data, k3_err *err)
{
    const char *p = data;
    int status = 0;
    for (int i = 0; s && i < K3_PARTS && !status; p += s->ix->part_bytes[i++])
        status = k3_sums_part(s, layer, expert, (k3_part_id)i, p, err);
    return status;
}

/* ---- writing ---------------------------------------------------------------------------- */

int k3_sums_create(k3_sums_writer **out, const k3_index *ix, const char *path, k3_err *err)
{
    *out = NULL;
    k3_sums_writer *w = calloc(1, sizeof *w);
    if (!w || !(w->path = path ? strdup(path) : k3_sidecar_place(ix->dir, "k3.sums"))) {
        free(w);
        return k3_fail(err, K3_ESYS, "%s: out of memory", ix->dir);
    }
    w->ix = ix;
    int status = lay_out(&w->at, &ix->config, err);
    if (!status)
        status = k3_file_create(&w->file, w->path, err);
    if (!status && k3_file_is_direct(w->file))
        status = k3_fail(err, K3_ESYS, "%s: not a regular file; checksums are written in any order", w->path);
    if (!status)
        *out = w;
    else
        k3_sums_abort(&w);
    return status;
}

static int put(k3_sums_writer *w, uint64_t number, const uint64_t *sums, uint64_t n, k3_err *err)
{
    const char *p = (const char *)sums;
    uint64_t left = n * 8, at = w->at.start + number * 8;
    while (left) {
        ssize_t done = pwrite(fileno(k3_file_stream(w->file)), p, left, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return k3_fail_write(err, w->path);
        p += done;
        at += (uint64_t)done;
        left -= (uint64_t)done;
    }
    return 0;
}

int k3_sums_put_tensor(k3_sums_writer *w, int layer, k3_tensor_id id, uint64_t row0, uint64_t rows, const void *data, k3_err *err)
{
    const char *p = data;
    uint64_t sums[BATCH];
    k3_tensor t;
    if (!k3_schema_tensor(&w->ix->config, layer, id, &t))
        return 0;
    uint64_t unit = k3_sums_rows(&t), row_bytes = t.bytes / t.rows, first = row(&w->at, layer)[id] + row0 / unit, n = 0;
    for (uint64_t r = 0; r < rows; r += unit) {
        uint64_t bytes = (rows - r < unit ? rows - r : unit) * row_bytes;
        sums[n++] = XXH3_64bits(p, bytes);
        p += bytes;
        if (n < BATCH && r + unit < rows)
            continue;
        int status = put(w, first, sums, n, err);
        if (status)
            return status;
        first += n;
        n = 0;
    }
    return 0;
}

int k3_sums_put_part(k3_sums_writer *w, int layer, uint64_t expert, k3_part_id part, const void *data, k3_err *err)
{
    uint64_t sum = XXH3_64bits(data, w->ix->part_bytes[part]);
    return put(w, row(&w->at, layer)[K3_TENSORS] + expert * K3_PARTS + part, &sum, 1, err);
}

/* Checksums of the sections, read back from the file; then head and end mark. */
static int finish(k3_sums_writer *w, k3_err *err)
{
    uint64_t layers = w->ix->config.layers;
    struct sums_head h = {.magic = SUMS_MAGIC, .version = SUMS_VERSION, .layers = (uint32_t)layers,
                          .file_bytes = w->at.file_bytes, .model = k3_index_fingerprint(w->ix)};
    FILE *to = k3_file_stream(w->file);
    char *head = malloc(w->at.start);
    uint64_t *section = (uint64_t *)(head + sizeof h);
    int status = 0;
    if (!head)
        return k3_fail(err, K3_ESYS, "%s: out of memory", w->path);
    memcpy(head, &h, sizeof h);
    for (uint64_t s = 0; s < layers + 1 && !status; s++)
        status = layer_sum(&w->at, fileno(to), w->path, (int)s - 1, &section[s], err);
    if (!status) {
        section[layers + 1] = head_sum(&w->at, head);
        if (fwrite(head, w->at.start, 1, to) != 1 || fseeko(to, (off_t)(w->at.file_bytes - END_BYTES), SEEK_SET) ||
            fwrite(SUMS_END, END_BYTES, 1, to) != 1)
            status = k3_fail_write(err, w->path);
    }
    free(head);
    return status;
}

static void writer_free(k3_sums_writer *w)
{
    free(w->at.base);
    free(w->path);
    free(w);
}

int k3_sums_commit(k3_sums_writer **writer, k3_err *err)
{
    k3_sums_writer *w = *writer;
    int status = finish(w, err);
    if (status) {
        k3_sums_abort(writer);
        return status;
    }
    status = k3_file_commit(&w->file, err);
    writer_free(w);
    *writer = NULL;
    return status;
}

void k3_sums_abort(k3_sums_writer **writer)
{
    k3_sums_writer *w = *writer;
    if (!w)
        return;
    k3_file_abort(&w->file);
    writer_free(w);
    *writer = NULL;
}
