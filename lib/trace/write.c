/* SPDX-License-Identifier: Apache-2.0 */
/* Writing a trace: choices are copied into the current frame; a full frame is
 * packed and written; index and end record follow at the end. */
#define _GNU_SOURCE
#include "format.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include <xxhash.h>
#include <zstd.h>

struct k3_trace_writer {
    k3_trace_header header;
    uint64_t seal;
    k3_file *file; /* NULL for standard output */
    FILE *to;
    char *name;
    uint64_t written;
    struct frame frame;
    k3_trace_row *step; /* rows of the current step */
    uint32_t step_rows, step_room;
    bool begun;                            /* the current step has a batch */
    uint64_t steps, choices;               /* in frames already written; steps counts the begun ones */
    uint64_t frame_step;                   /* step of the frame's first batch */
    uint32_t frame_steps;                  /* that begin in the frame */
    uint32_t sequence_base, sequence_next; /* for append */
    uint8_t *index;                        /* [frames] entries as written */
    size_t index_room;
    uint64_t frames;
    bool live;                             /* k3_trace_live */
    int64_t flushed;                       /* ns of CLOCK_MONOTONIC at the last flush */
    int failed; /* status of an earlier failure */
};

static int put(k3_trace_writer *w, const void *data, size_t size, k3_err *err)
{
    errno = 0;
    if (fwrite(data, 1, size, w->to) != size)
        return w->failed = k3_fail_write(err, w->name);
    w->written += size;
    return 0;
}

/* A pipe's reader sees whole frames; of a run that is killed they can be salvaged. */
static int flush_stream(k3_trace_writer *w, k3_err *err)
{
    errno = 0;
    return fflush(w->to) ? w->failed = k3_fail_write(err, w->name) : 0;
}

/* Everything that was written is of this trace: the same model, shape and kind of record. */
static int check_same(const k3_trace_header *old, const k3_trace_header *h, const char *path, k3_err *err)
{
    const char *what = NULL;
    if (!k3_fingerprint_equal(old->fingerprint, h->fingerprint))
        what = "model";
    else if (memcmp(&old->shape, &h->shape, sizeof h->shape))
        what = "shape";
    else if (old->expert_bytes != h->expert_bytes)
        what = "expert size";
    else if (old->weights != h->weights || old->residency != h->residency)
        what = "kind of record";
    else if (old->policy != h->policy || old->slots != h->slots)
        what = "cache policy or size";
    if (!what)
        return 0;
    return k3_fail(err, K3_EDATA, "%s: the trace to append to has another %s", path, what);
}

/* Carries the trace at `path` over into w. */
static int carry_over(k3_trace_writer *w, const char *path, k3_err *err)
{
    k3_trace_reader *r;
    const k3_trace_batch *b;
    int status = k3_trace_open(&r, path, err);
    if (status)
        return status;
    status = check_same(k3_trace_info(r), &w->header, path, err);
    while (!status && !(status = k3_trace_next(r, &b, err)) && b) {
        if (b->new_step)
            status = k3_trace_step_rows(w, b->row, b->rows, err);
        if (!status)
            status = k3_trace_layer(w, b->layer, b->experts, b->rows * b->k, b->weights, b->residency, err);
    }
    k3_trace_free(r);
    w->sequence_base = w->sequence_next;
    return status;
}

/* Names what a killed run left, so that it is found before it is forgotten. */
static void note_parts(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t m = strlen(e->d_name);
        if (m > n + 6 && !strncmp(e->d_name, name, n) && e->d_name[n] == '.' && !strcmp(e->d_name + m - 5, ".part"))
            k3_note("%.*s%s: unfinished, of another run that goes on or was killed; k3-trace cut --salvage keeps its "
                    "whole frames",
                    slash ? (int)(slash - path) + 1 : 0, path, e->d_name);
    }
    if (dir)
        closedir(dir);
    free(folder);
}

static int start(k3_trace_writer *w, const char *path, bool append, k3_err *err)
{
    uint8_t bytes[HEADER_BYTES];
    struct stat st;
    bool carry = append && strcmp(path, "-") && !stat(path, &st) && S_ISREG(st.st_mode);
    if (strcmp(path, "-")) {
        note_parts(path);
        int status = k3_file_create_part(&w->file, path, err);
        if (status)
            return status;
        w->to = k3_file_stream(w->file);
    } else {
        w->to = stdout;
    }
    if (k3_frame_reserve(&w->frame, &w->header, 1024, 1024, FRAME_CHOICES + FRAME_CHOICES / 4, err))
        return K3_ESYS;
    k3_file_header_encode(&w->header, bytes, &w->seal);
    int status = put(w, bytes, sizeof bytes, err);
    if (!status)
        status = flush_stream(w, err);
    return status || !carry ? status : carry_over(w, path, err);
}

int k3_trace_create(k3_trace_writer **out, const char *path, const k3_trace_header *h, bool append, k3_err *err)
{
    *out = NULL;
    int status = k3_trace_check_header(h, err);
    if (status)
        return status;
    k3_trace_writer *w = calloc(1, sizeof *w);
    if (!w || !(w->name = strdup(strcmp(path, "-") ? path : "standard output"))) {
        free(w);
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    }
    w->header = *h;
    status = start(w, path, append, err);
    if (status)
        k3_trace_abort(&w);
    *out = w;
    return status;
}

static void writer_free(k3_trace_writer *w)
{
    ZSTD_freeCCtx(w->frame.zstd);
    k3_frame_free(&w->frame);
    free(w->step);
    free(w->index);
    free(w->name);
    free(w);
}

void k3_trace_abort(k3_trace_writer **w)
{
    if (!*w)
        return;
    k3_file_abort(&(*w)->file);
    writer_free(*w);
    *w = NULL;
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void k3_trace_live(k3_trace_writer *w)
{
    w->live = true;
    w->flushed = now();
}

/* Whether the frame must not wait for more layers. */
static bool is_due(const k3_trace_writer *w)
{
    return w->frame.choices >= FRAME_CHOICES || (w->live && now() - w->flushed >= 1000000000);
}

int k3_trace_flush(k3_trace_writer *w, k3_err *err)
{
    struct frame *f = &w->frame;
    uint8_t bytes[FRAME_BYTES];
    if (w->failed)
        return k3_fail(err, w->failed, "%s: the trace could not be written before", w->name);
    if (!f->choices)
        return 0;
    struct frame_header fh = {.steps = w->frame_steps,
                              .continues = !f->batch[0].new_step,
                              .first_step = w->frame_step,
                              .choices_before = w->choices};
    if ((w->failed = k3_frame_encode(f, &w->header, &fh, err)) ||
        (w->failed = k3_grow(&w->index, &w->index_room, (size_t)(w->frames + 1) * INDEX_BYTES, err)))
        return w->failed;
    uint8_t *entry = w->index + w->frames * INDEX_BYTES;
    put64(entry, w->written);
    put64(entry + 8, w->frame_step);
    put64(entry + 16, w->choices);
    k3_frame_header_encode(&fh, w->seal, bytes);
    if (put(w, bytes, sizeof bytes, err) || put(w, f->packed, fh.packed, err) || flush_stream(w, err))
        return w->failed;
    w->flushed = w->live ? now() : 0;
    w->frames++;
    w->choices += f->choices;
    w->frame_steps = 0;
    f->batches = f->rows = f->choices = 0;
    return 0;
}

int k3_trace_step(k3_trace_writer *w, uint32_t sequence, uint64_t position, uint32_t phase, k3_err *err)
{
    const k3_trace_row row = {.position = position, .sequence = sequence, .phase = phase};
    return k3_trace_step_rows(w, &row, 1, err);
}

int k3_trace_step_rows(k3_trace_writer *w, const k3_trace_row *rows, int n, k3_err *err)
{
    if (n < 1 || n > K3_TRACE_MAX_ROWS)
        return k3_fail(err, K3_EUSAGE, "%s: a step cannot have %d rows (1 to %d)", w->name, n, K3_TRACE_MAX_ROWS);
    if ((uint32_t)n > w->step_room) {
        size_t room = w->step_room * sizeof *rows;
        if (k3_grow(&w->step, &room, (size_t)n * sizeof *rows, err))
            return K3_ESYS;
        w->step_room = (uint32_t)(room / sizeof *rows);
    }
    for (int i = 0; i < n; i++) {
        if (rows[i].position >> 48 || rows[i].phase >= K3_PHASE_COUNT ||
            rows[i].sequence >= UINT32_MAX - w->sequence_base)
            return k3_fail(err, K3_EUSAGE, "%s: no row has sequence %u, position %" PRIu64 " and phase %u", w->name,
                           rows[i].sequence, rows[i].position, rows[i].phase);
        w->step[i] = rows[i];
        w->step[i].sequence += w->sequence_base;
    }
    w->step_rows = (uint32_t)n;
    w->begun = false;
    return 0;
}

/* Opens a place for the step's rows in the frame, for its first batch there. */
static int enter_step(k3_trace_writer *w, k3_err *err)
{
    struct frame *f = &w->frame;
    if (k3_frame_reserve(f, &w->header, 0, f->rows + w->step_rows, 0, err))
        return K3_ESYS;
    memcpy(f->row + f->rows, w->step, w->step_rows * sizeof *w->step);
    f->rows += w->step_rows;
    if (!w->begun) {
        w->steps++;
        w->frame_steps++;
        for (uint32_t i = 0; i < w->step_rows; i++)
            if (w->step[i].sequence >= w->sequence_next)
                w->sequence_next = w->step[i].sequence + 1;
    }
    if (!f->batches)
        w->frame_step = w->steps - 1;
    return 0;
}

static int check_layer(const k3_trace_writer *w, int layer, const uint16_t *experts, int n, const float *weights,
                       const uint8_t *residency, k3_err *err)
{
    const k3_trace_header *h = &w->header;
    if (!w->step_rows)
        return k3_fail(err, K3_EUSAGE, "%s: a layer was recorded before any step", w->name);
    if (layer < h->shape.first || layer >= h->shape.layers)
        return k3_fail(err, K3_EUSAGE, "%s: layer %d has no experts (%d to %d have)", w->name, layer, h->shape.first,
                       h->shape.layers - 1);
    if (n < 1 || n > K3_TRACE_MAX_CHOICES || n % (int)w->step_rows)
        return k3_fail(err, K3_EUSAGE, "%s: layer %d: %d choices cannot be shared by %u rows", w->name, layer, n,
                       w->step_rows);
    if (!weights != !h->weights || !residency != !h->residency)
        return k3_fail(err, K3_EUSAGE, "%s: layer %d: weights or residency are not as the header says", w->name,
                       layer);
    for (int i = 0; i < n; i++)
        if (experts[i] >= h->shape.experts)
            return k3_fail(err, K3_EUSAGE, "%s: layer %d has no expert %d (0 to %d)", w->name, layer, experts[i],
                           h->shape.experts - 1);
    for (int i = 0; residency && i < n; i++)
        if (residency[i] > 1)
            return k3_fail(err, K3_EUSAGE, "%s: layer %d: residency %u is neither 0 nor 1", w->name, layer,
                           residency[i]);
    return 0;
}

int k3_trace_layer(k3_trace_writer *w, int layer, const uint16_t *experts, int n, const float *weights,
                   const uint8_t *residency, k3_err *err)
{
    struct frame *f = &w->frame;
    int status = w->failed ? k3_fail(err, w->failed, "%s: the trace could not be written before", w->name)
                           : check_layer(w, layer, experts, n, weights, residency, err);
    if (status)
        return status;
    if ((!w->begun || !f->batches) && (status = enter_step(w, err)))
        return status;
    if ((status = k3_frame_reserve(f, &w->header, f->batches + 1, 0, f->choices + (uint32_t)n, err)))
        return status;
    f->batch[f->batches++] = (struct batch){.first_row = f->rows - w->step_rows,
                                            .rows = w->step_rows,
                                            .at = f->choices,
                                            .k = (uint32_t)n / w->step_rows,
                                            .layer = (uint32_t)layer,
                                            .new_step = !w->begun};
    memcpy(f->expert + f->choices, experts, (size_t)n * sizeof *experts);
    if (weights)
        memcpy(f->weight + f->choices, weights, (size_t)n * sizeof *weights);
    if (residency)
        memcpy(f->residency + f->choices, residency, (size_t)n);
    f->choices += (uint32_t)n;
    w->begun = true;
    return is_due(w) ? k3_trace_flush(w, err) : 0;
}

static int finish(k3_trace_writer *w, k3_err *err)
{
    uint8_t bytes[8], sum[8], end[END_BYTES];
    int status = k3_trace_flush(w, err);
    if (status)
        return status;
    size_t size = (size_t)w->frames * INDEX_BYTES;
    struct end_record e = {.frames = w->frames,
                           .steps = w->steps,
                           .choices = w->choices,
                           .index_at = w->written,
                           .file_bytes = w->written + sizeof bytes + size + sizeof sum + sizeof end};
    put32(bytes, MAGIC_INDEX);
    put32(bytes + 4, (uint32_t)w->frames);
    put64(sum, XXH3_64bits_withSeed(w->index ? w->index : bytes, size, w->seal));
    k3_end_encode(&e, w->seal, end);
    if (put(w, bytes, sizeof bytes, err) || (size && put(w, w->index, size, err)) || put(w, sum, sizeof sum, err) ||
        put(w, end, sizeof end, err) || flush_stream(w, err))
        return w->failed;
    return 0;
}

int k3_trace_close(k3_trace_writer **out, k3_err *err)
{
    k3_trace_writer *w = *out;
    *out = NULL;
    int status = finish(w, err);
    if (w->file && status)
        k3_file_abort(&w->file);
    else if (w->file)
        status = k3_file_commit(&w->file, err);
    writer_free(w);
    return status;
}
