/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a trace, as they are and with sizes, checksums, index and end made right: whatever is accepted is safe to
 * use, and comes back choice by choice when it is written again.
 *
 * A frame's payload may stand uncompressed in the input (seeds/trace/README): it is packed here, so that a mutation
 * reaches what lies behind zstd. */
#define _GNU_SOURCE
#include "fuzz.h"
#include "format.h"
#include "k3_sim.h"

#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

enum { ROOM = 1 << 20 };

static int put_file(const uint8_t *data, size_t size, char name[32])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size)
        exit(3);
    snprintf(name, 32, "/proc/self/fd/%d", fd);
    return fd;
}

/* ---- making it right ------------------------------------------------------------------- */

/* The frame at `in`, `left` bytes of input from its header on: packed and sealed to out. Returns what it took of the
 * input, 0 if that is no frame; *n is what it wrote. */
static size_t mend_frame(const uint8_t *in, size_t left, uint64_t seal, uint8_t *out, size_t *n)
{
    if (left <= FRAME_BYTES || get32(in) != MAGIC_FRAME)
        return 0;
    struct frame_header h = {.steps = get32(in + 12), .choices = get32(in + 16), .continues = get32(in + 20),
                             .first_step = get64(in + 24), .choices_before = get64(in + 32)};
    size_t packed = get32(in + 4), raw = get32(in + 8);
    const uint8_t *payload = in + FRAME_BYTES;
    left -= FRAME_BYTES;
    bool is_zstd = left >= 4 && get32(payload) == ZSTD_MAGICNUMBER;
    size_t taken = is_zstd ? packed : raw;
    taken = taken < left ? taken : left;
    if (is_zstd) {
        memcpy(out + FRAME_BYTES, payload, taken);
        h.packed = (uint32_t)taken;
        h.raw = (uint32_t)raw;
    } else {
        h.packed = (uint32_t)ZSTD_compress(out + FRAME_BYTES, ROOM / 2, payload, taken, 1);
        h.raw = (uint32_t)taken;
    }
    h.payload_sum = XXH3_64bits(out + FRAME_BYTES, h.packed);
    k3_frame_header_encode(&h, seal, out);
    *n = FRAME_BYTES + h.packed;
    return FRAME_BYTES + taken;
}

/* A whole trace of the header and the frames of the input; 0 if it is too short or too long. */
static size_t mend(const uint8_t *in, size_t size, uint8_t *out)
{
    struct end_record end = {0};
    uint8_t index[64 * INDEX_BYTES];
    if (size < HEADER_BYTES || size > ROOM / 4)
        return 0;
    memcpy(out, in, HEADER_BYTES);
    uint64_t seal = XXH3_64bits(out, HEADER_BYTES - 8);
    put64(out + HEADER_BYTES - 8, seal);
    size_t at = HEADER_BYTES, to = HEADER_BYTES, n;
    for (size_t taken; end.frames < 64 && (taken = mend_frame(in + at, size - at, seal, out + to, &n)); at += taken, to += n) {
        uint8_t *entry = index + end.frames++ * INDEX_BYTES;
        put64(entry, to);
        put64(entry + 8, get64(out + to + 24));
        put64(entry + 16, get64(out + to + 32));
        end.steps += get32(out + to + 12);
        end.choices += get32(out + to + 16);
        if (to > ROOM / 2 - FRAME_BYTES)
            return 0;
    }
    size_t entries = end.frames * INDEX_BYTES;
    end.index_at = to;
    put32(out + to, MAGIC_INDEX);
    put32(out + to + 4, (uint32_t)end.frames);
    memcpy(out + to + 8, index, entries);
    put64(out + to + 8 + entries, XXH3_64bits_withSeed(index, entries, seal));
    to += 16 + entries;
    end.file_bytes = to + END_BYTES;
    k3_end_encode(&end, seal, out + to);
    return to + END_BYTES;
}

/* ---- using it -------------------------------------------------------------------------- */

static void check_batch(const k3_trace_header *h, const k3_trace_batch *b)
{
    if (b->rows < 1 || b->k < 1 || b->layer < h->shape.first || b->layer >= h->shape.layers)
        abort();
    for (int i = 0; i < b->rows; i++)
        if (b->row[i].phase >= K3_PHASE_COUNT || b->row[i].position >> 48)
            abort();
    for (int i = 0; i < b->rows * b->k; i++)
        if (b->experts[i] >= h->shape.experts || (b->residency && b->residency[i] > 1))
            abort();
}

/* Everything that a batch says, into the sum. */
static uint64_t sum_batch(uint64_t sum, const k3_trace_batch *b)
{
    size_t n = (size_t)b->rows * (size_t)b->k;
    const uint64_t fixed[] = {b->step, b->new_step, (uint64_t)b->rows, (uint64_t)b->k, (uint64_t)b->layer};
    sum = XXH3_64bits_withSeed(fixed, sizeof fixed, sum);
    for (int i = 0; i < b->rows; i++) {
        const uint64_t row[] = {b->row[i].position, b->row[i].sequence, b->row[i].phase};
        sum = XXH3_64bits_withSeed(row, sizeof row, sum);
    }
    sum = XXH3_64bits_withSeed(b->experts, n * sizeof *b->experts, sum);
    if (b->weights)
        sum = XXH3_64bits_withSeed(b->weights, n * sizeof *b->weights, sum);
    return b->residency ? XXH3_64bits_withSeed(b->residency, n, sum) : sum;
}

/* Reads all of it, into `w` too if not NULL; false if it was refused. */
static bool read_trace(const char *name, k3_trace_writer *w, k3_trace_header *h, uint64_t *sum, bool salvage)
{
    k3_trace_reader *r;
    const k3_trace_batch *b;
    k3_requests q = {0};
    k3_err err;
    int status = k3_trace_open(&r, name, &err);
    if (status)
        return false;
    *h = *k3_trace_info(r);
    if (salvage)
        k3_trace_salvage(r);
    if (k3_requests_new(&q, &h->shape, true, &err))
        exit(3);
    for (*sum = 0; !(status = k3_trace_next(r, &b, &err)) && b;) {
        check_batch(h, b);
        *sum = sum_batch(*sum, b);
        if (k3_requests_add(&q, b, true, &err))
            exit(3);
        if (w && ((b->new_step && k3_trace_step_rows(w, b->row, b->rows, &err)) ||
                  k3_trace_layer(w, b->layer, b->experts, b->rows * b->k, b->weights, b->residency, &err)))
            abort(); /* what a reader accepts can be written */
    }
    if (salvage && status)
        abort();
    k3_requests_free(&q);
    k3_trace_free(r);
    return !status;
}

static void try(const uint8_t *data, size_t size)
{
    char name[32], again[32];
    k3_trace_header h, other;
    uint64_t sum, salvaged, copy;
    k3_err err;
    k3_trace_writer *w;
    int fd = put_file(data, size, name);
    bool whole = read_trace(name, NULL, &h, &sum, false);
    if (read_trace(name, NULL, &h, &salvaged, true) && whole) {
        int to = put_file(data, 0, again);
        if (salvaged != sum || k3_trace_create(&w, again, &h, false, &err) || !read_trace(name, w, &h, &sum, false) ||
            k3_trace_close(&w, &err) || !read_trace(again, NULL, &other, &copy, false) || copy != sum)
            abort();
        close(to);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t mended[ROOM + 4096];
    try(data, size);
    size = mend(data, size, mended);
    if (size)
        try(mended, size);
    return 0;
}
