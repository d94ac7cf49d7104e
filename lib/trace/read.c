/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a trace, from a file or a pipe, one frame at a time. */
#define _GNU_SOURCE
#include "format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

struct k3_trace_reader {
    FILE *from;
    char *name;
    k3_trace_header header;
    uint64_t seal, at; /* bytes read so far */
    struct frame frame;
    uint32_t next; /* next batch in the frame */
    uint64_t step; /* number of the current step, or of the next one */
    bool begun, ended;
    k3_trace_totals count;
    struct index_entry *index; /* of the frames read, to compare with the file's */
    size_t index_room;
    k3_trace_row *rows;   /* of the step that a frame may go on with */
    size_t rows_room;
    uint32_t nrows;       /* 0: not known */
    bool salvage;
    int64_t cut_off;
    k3_trace_batch batch;
};

/* ---- bytes ------------------------------------------------------------------------ */

/* How many of `size` bytes are there; a read error is an error. */
static int get_some(k3_trace_reader *r, void *buf, size_t size, size_t *got, k3_err *err)
{
    errno = 0;
    *got = fread(buf, 1, size, r->from);
    r->at += *got;
    if (*got < size && ferror(r->from))
        return k3_fail_errno(err, r->name, "cannot read at byte %" PRIu64, r->at);
    return 0;
}

/* All of them; `what` began at byte `start`, `had` of its bytes are already read. */
static int get_all(k3_trace_reader *r, void *buf, size_t size, const char *what, size_t had, uint64_t whole,
                   k3_err *err)
{
    size_t got;
    uint64_t start = r->at - had;
    int status = get_some(r, buf, size, &got, err);
    if (status || got == size)
        return status;
    return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)start,
                      "the trace is cut off: %s has %" PRIu64 " of %" PRIu64 " bytes; its writer did not finish "
                      "(k3-trace cut --salvage keeps the whole frames)",
                      what, r->at - start, whole);
}

/* ---- opening ---------------------------------------------------------------------- */

static int refuse_start(const k3_trace_reader *r, const uint8_t *bytes, size_t got, k3_err *err)
{
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd}, gzip[] = {0x1f, 0x8b};
    if (!got)
        return k3_fail(err, K3_EDATA, "%s: the file is empty, not a trace", r->name);
    if (got >= 4 && !memcmp(bytes, zstd, 4))
        return k3_fail(err, K3_EDATA,
                       "%s: compressed by zstd; pipe it through zstd -dc (a trace is compressed inside)", r->name);
    if (got >= 2 && !memcmp(bytes, gzip, 2))
        return k3_fail(err, K3_EDATA,
                       "%s: compressed by gzip; pipe it through gzip -dc (a trace is compressed inside)", r->name);
    if (got >= 4 && (get32(bytes) & 0xfffffff0) == 0x184d2a50)
        return k3_fail(err, K3_EDATA, "%s: starts with a skippable zstd frame, not a trace", r->name);
    if (got >= 8 && memcmp(bytes, TRACE_MAGIC, 8) && get32(bytes) < 4096 && get32(bytes + 4) < 65536)
        return k3_fail(
            err, K3_EDATA,
            "%s: not a .k3t trace; if these are headerless (layer, expert) pairs, k3-trace import reads them",
            r->name);
    if (got < 8 || memcmp(bytes, TRACE_MAGIC, 8))
        return k3_fail_at(err, K3_EDATA, r->name, NULL, 0,
                          "not a trace: the first bytes are not those of a .k3t file");
    return k3_fail_at(err, K3_EDATA, r->name, NULL, 0, "the trace is cut off: its header has %zu of %d bytes", got,
                      HEADER_BYTES);
}

static int open_file(k3_trace_reader *r, const char *path, k3_err *err)
{
    struct stat st;
    bool std = !strcmp(path, "-");
    if (!(r->name = strdup(std ? "standard input" : path)))
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    int fd = std ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && !fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        close(fd);
        return k3_fail(err, K3_ESYS, "%s: is a folder, not a trace", r->name);
    }
    if (fd < 0 || !(r->from = fdopen(fd, "r"))) {
        int status = k3_fail_errno(err, r->name, "cannot open");
        if (fd >= 0)
            close(fd);
        return status;
    }
    uint8_t bytes[HEADER_BYTES];
    size_t got;
    int status = get_some(r, bytes, sizeof bytes, &got, err);
    if (status)
        return status;
    if (got < sizeof bytes || memcmp(bytes, TRACE_MAGIC, 8))
        return refuse_start(r, bytes, got, err);
    return k3_file_header_decode(r->name, bytes, &r->header, &r->seal, err);
}

int k3_trace_open(k3_trace_reader **out, const char *path, k3_err *err)
{
    *out = NULL;
    k3_trace_reader *r = calloc(1, sizeof *r);
    if (!r)
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    r->cut_off = -1;
    int status = open_file(r, path, err);
    if (status) {
        k3_trace_free(r);
        return status;
    }
    *out = r;
    return 0;
}

void k3_trace_free(k3_trace_reader *r)
{
    if (!r)
        return;
    if (r->from)
        fclose(r->from);
    ZSTD_freeDCtx(r->frame.zstd);
    k3_frame_free(&r->frame);
    free(r->index);
    free(r->rows);
    free(r->name);
    free(r);
}

const k3_trace_header *k3_trace_info(const k3_trace_reader *r)
{
    return &r->header;
}

const char *k3_trace_name(const k3_trace_reader *r)
{
    return r->name;
}

uint64_t k3_trace_bytes(const k3_trace_reader *r, uint64_t *total)
{
    struct stat st;
    *total = !fstat(fileno(r->from), &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    return r->at;
}

k3_trace_totals k3_trace_count(const k3_trace_reader *r)
{
    return r->count;
}

void k3_trace_salvage(k3_trace_reader *r)
{
    r->salvage = true;
}

int64_t k3_trace_cut_off(const k3_trace_reader *r)
{
    return r->cut_off;
}

/* ---- the end ------------------------------------------------------------------------- */

/* The index in the file against the frames that were read (those skipped by a
 * seek were taken from it). `magic` is already read. */
static int check_index(k3_trace_reader *r, const uint8_t magic[4], uint64_t start, k3_err *err)
{
    uint8_t buf[4096 / INDEX_BYTES * INDEX_BYTES], tail[8];
    uint64_t frames = r->count.frames;
    XXH3_state_t *sum = XXH3_createState();
    int status = sum ? get_all(r, buf, 4, "the index", 4, 8, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (!status && (get32(magic) != MAGIC_INDEX || get32(buf) != frames))
        status = k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)start,
                            "the index lists %u frames, %" PRIu64 " were read", get32(buf), frames);
    if (!status)
        XXH3_64bits_reset_withSeed(sum, r->seal);
    uint64_t whole = 16 + frames * INDEX_BYTES;
    for (uint64_t done = 0; !status && done < frames;) {
        uint64_t n = frames - done < sizeof buf / INDEX_BYTES ? frames - done : sizeof buf / INDEX_BYTES;
        status = get_all(r, buf, n * INDEX_BYTES, "the index", r->at - start, whole, err);
        if (status)
            break;
        XXH3_64bits_update(sum, buf, n * INDEX_BYTES);
        for (uint64_t i = 0; i < n && !status; i++) {
            const struct index_entry *e = &r->index[done + i];
            const uint8_t *p = buf + i * INDEX_BYTES;
            if (get64(p) != e->offset || get64(p + 8) != e->first_step || get64(p + 16) != e->choices_before)
                status = k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)start,
                                    "the index is damaged: it does not find frame %" PRIu64, done + i);
        }
        done += n;
    }
    if (!status)
        status = get_all(r, tail, 8, "the index", r->at - start, whole, err);
    if (!status && get64(tail) != XXH3_64bits_digest(sum))
        status = k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)start,
                            "the index is damaged: its checksum does not match");
    XXH3_freeState(sum);
    return status;
}

static int read_end(k3_trace_reader *r, const uint8_t magic[4], k3_err *err)
{
    uint8_t buf[END_BYTES];
    struct end_record e;
    size_t got;
    uint64_t index_at = r->at - 4;
    int status = check_index(r, magic, index_at, err);
    uint64_t end_at = r->at;
    if (!status)
        status = get_all(r, buf, sizeof buf, "the end record", 0, sizeof buf, err);
    if (!status)
        status = k3_end_decode(r->name, end_at, buf, r->seal, &e, err);
    if (status)
        return status;
    if (e.frames != r->count.frames || e.steps != r->count.steps || e.choices != r->count.choices ||
        e.index_at != index_at || e.file_bytes != r->at)
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)end_at,
                          "the end record counts %" PRIu64 " steps and %" PRIu64 " choices, %" PRIu64 " and %" PRIu64
                          " were read",
                          e.steps, e.choices, r->count.steps, r->count.choices);
    status = get_some(r, buf, 1, &got, err);
    if (status)
        return status;
    if (got)
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)(r->at - 1),
                          "data follows the end of the trace; k3-trace merge joins traces");
    r->count.bytes = r->at;
    r->ended = true;
    return 0;
}

/* ---- frames ---------------------------------------------------------------------------- */

static int note_frame(k3_trace_reader *r, uint64_t offset, const struct frame_header *fh, k3_err *err)
{
    if (r->count.frames >= MAX_FRAMES)
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)offset, "more than %d frames", MAX_FRAMES);
    if (k3_grow(&r->index, &r->index_room, (size_t)(r->count.frames + 1) * sizeof *r->index, err))
        return K3_ESYS;
    r->index[r->count.frames++] = (struct index_entry){offset, fh->first_step, fh->choices_before};
    r->count.choices += fh->choices;
    r->count.steps += fh->steps;
    return 0;
}

/* Whether the frame follows the one before: no frame lost, doubled or out of order. */
static int check_order(const k3_trace_reader *r, uint64_t offset, const struct frame_header *fh, k3_err *err)
{
    uint64_t step = fh->continues ? r->count.steps - 1 : r->count.steps;
    if (fh->choices_before == r->count.choices && fh->first_step == step && (!fh->continues || r->count.steps))
        return 0;
    return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)offset,
                      "a frame starts at step %" PRIu64 " after %" PRIu64 " choices, %" PRIu64 " and %" PRIu64
                      " were read",
                      fh->first_step, fh->choices_before, step, r->count.choices);
}

/* Keeps the rows of the last step of the frame in memory. */
static int keep_rows(k3_trace_reader *r, k3_err *err)
{
    const struct frame *f = &r->frame;
    if (!f->batches)
        return 0;
    const struct batch *b = &f->batch[f->batches - 1];
    if (k3_grow(&r->rows, &r->rows_room, b->rows * sizeof *r->rows, err))
        return K3_ESYS;
    memcpy(r->rows, f->row + b->first_row, b->rows * sizeof *r->rows);
    r->nrows = b->rows;
    return 0;
}

/* A frame that goes on with a step repeats its rows. */
static int check_rows(const k3_trace_reader *r, uint64_t offset, const struct frame_header *fh, k3_err *err)
{
    const struct frame *f = &r->frame;
    bool same = f->batch[0].rows == r->nrows;
    for (uint32_t i = 0; i < r->nrows && same; i++) {
        const k3_trace_row *a = &r->rows[i], *b = &f->row[f->batch[0].first_row + i];
        same = a->position == b->position && a->sequence == b->sequence && a->phase == b->phase;
    }
    return same || !fh->continues || !r->nrows
               ? 0
               : k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)offset,
                            "a frame goes on with step %" PRIu64 ", but has other rows than the frame before", fh->first_step);
}

static int read_frame(k3_trace_reader *r, k3_err *err)
{
    uint8_t bytes[FRAME_BYTES];
    struct frame_header fh;
    size_t got;
    uint64_t offset = r->at;
    int status = get_some(r, bytes, 4, &got, err);
    if (!status && got < 4)
        status = k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)offset,
                            "the trace is cut off: it has no end record; its writer did not finish "
                            "(k3-trace cut --salvage keeps the whole frames)");
    if (status)
        return status;
    if (get32(bytes) == MAGIC_INDEX)
        return read_end(r, bytes, err);
    if (get32(bytes) != MAGIC_FRAME)
        return k3_fail_at(err, K3_EDATA, r->name, NULL, (int64_t)offset,
                          "neither a frame nor the index: the bytes are %02x %02x %02x %02x", bytes[0], bytes[1],
                          bytes[2], bytes[3]);
    status = keep_rows(r, err);
    if (!status)
        status = get_all(r, bytes + 4, sizeof bytes - 4, "a frame header", 4, sizeof bytes, err);
    if (!status)
        status = k3_frame_header_decode(r->name, offset, bytes, r->seal, &fh, err);
    if (!status)
        status = check_order(r, offset, &fh, err);
    if (!status)
        status = k3_grow(&r->frame.packed, &r->frame.packed_room, fh.packed, err);
    if (!status)
        status =
            get_all(r, r->frame.packed, fh.packed, "a frame", FRAME_BYTES, FRAME_BYTES + (uint64_t)fh.packed, err);
    if (!status)
        status = k3_frame_decode(&r->frame, &r->header, &fh, r->name, offset, err);
    if (!status)
        status = check_rows(r, offset, &fh, err);
    if (status)
        return status;
    r->next = 0;
    return note_frame(r, offset, &fh, err);
}

int k3_trace_next(k3_trace_reader *r, const k3_trace_batch **out, k3_err *err)
{
    struct frame *f = &r->frame;
    *out = NULL;
    while (!r->ended && r->next >= f->batches) {
        uint64_t offset = r->at;
        int status = read_frame(r, r->salvage ? NULL : err);
        if (status && r->salvage) {
            r->cut_off = (int64_t)offset;
            r->ended = true;
            return 0;
        }
        if (status)
            return status;
    }
    if (r->ended)
        return 0;
    const struct batch *b = &f->batch[r->next++];
    r->step += b->new_step && r->begun;
    r->begun = true;
    r->batch = (k3_trace_batch){.step = r->step,
                                .new_step = b->new_step,
                                .rows = (int)b->rows,
                                .k = (int)b->k,
                                .layer = (int)b->layer,
                                .row = f->row + b->first_row,
                                .experts = f->expert + b->at,
                                .weights = r->header.weights ? f->weight + b->at : NULL,
                                .residency = r->header.residency ? f->residency + b->at : NULL};
    *out = &r->batch;
    return 0;
}

/* ---- seeking ----------------------------------------------------------------------------- */

/* Reads the index from the end of a file that can seek; *entries stays NULL if
 * there is none to trust: reading on from here then reports what is wrong. */
static int load_index(k3_trace_reader *r, uint8_t **entries, struct end_record *e, k3_err *err)
{
    uint8_t end[END_BYTES];
    struct stat st;
    int fd = fileno(r->from);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size < (off_t)(HEADER_BYTES + END_BYTES))
        return 0;
    uint64_t size = (uint64_t)st.st_size, at = size - END_BYTES;
    if (k3_pread_full(fd, r->name, end, sizeof end, at, NULL) || k3_end_decode(r->name, at, end, r->seal, e, NULL))
        return 0;
    uint64_t bytes = e->frames * INDEX_BYTES;
    if (e->frames > MAX_FRAMES || e->file_bytes != size || e->index_at > at || at - e->index_at != bytes + 16)
        return 0;
    if (!(*entries = malloc(bytes + 16)))
        return k3_fail(err, K3_ESYS, "%s: out of memory for an index of %" PRIu64 " bytes", r->name, bytes);
    if (k3_pread_full(fd, r->name, *entries, bytes + 16, e->index_at, NULL) || get32(*entries) != MAGIC_INDEX ||
        get32(*entries + 4) != e->frames ||
        XXH3_64bits_withSeed(*entries + 8, bytes, r->seal) != get64(*entries + 8 + bytes)) {
        free(*entries);
        *entries = NULL;
    }
    return 0;
}

int k3_trace_seek(k3_trace_reader *r, uint64_t step, k3_err *err)
{
    uint8_t *entries = NULL;
    struct end_record e;
    int status = r->begun ? 0 : load_index(r, &entries, &e, err);
    if (!entries)
        return status;
    uint64_t skip = 0;
    while (skip + 1 < e.frames && get64(entries + 8 + (skip + 1) * INDEX_BYTES + 8) < step)
        skip++;
    for (uint64_t i = 0; i < skip && !status; i++) {
        const uint8_t *p = entries + 8 + i * INDEX_BYTES, *q = p + INDEX_BYTES;
        struct frame_header fh = {.first_step = get64(p + 8),
                                  .choices_before = get64(p + 16),
                                  .choices = (uint32_t)(get64(q + 16) - get64(p + 16))};
        status = note_frame(r, get64(p), &fh, err);
    }
    const uint8_t *first = entries + 8 + skip * INDEX_BYTES;
    uint8_t bytes[FRAME_BYTES];
    struct frame_header fh;
    if (!status && skip) {
        status = k3_pread_full(fileno(r->from), r->name, bytes, sizeof bytes, get64(first), err);
        if (!status)
            status = k3_frame_header_decode(r->name, get64(first), bytes, r->seal, &fh, err);
        r->count.steps = get64(first + 8) + (!status && fh.continues);
        r->step = get64(first + 8);
        r->at = get64(first);
        if (!status && fseeko(r->from, (off_t)r->at, SEEK_SET))
            status = k3_fail_errno(err, r->name, "cannot seek");
    }
    free(entries);
    return status;
}
