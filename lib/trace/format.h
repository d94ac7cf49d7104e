/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of .k3t: the layout that k3-trace(5) describes, and one frame in memory.
 * All integers are little-endian. */
#ifndef K3_TRACE_FORMAT_H
#define K3_TRACE_FORMAT_H

#include "k3_trace.h"

#include <string.h>

enum {
    FORMAT_VERSION = 1,
    HEADER_BYTES = 192,
    FRAME_BYTES = 56,   /* frame header */
    INDEX_BYTES = 24,   /* one entry */
    END_BYTES = 64,
    FRAME_CHOICES = 65536, /* a frame ends with the layer that reaches this */
    MAX_RAW = 64 << 20,    /* bytes of a frame before compression */
    MAX_FRAMES = 1 << 28,
};

#define TRACE_MAGIC "\211K3T\r\n\032\n" /* 8 bytes: not text, and damaged by a transfer as text */
enum { MAGIC_FRAME = 0x4654334b, MAGIC_INDEX = 0x4954334b, MAGIC_END = 0x4554334b }; /* K3TF K3TI K3TE */

static inline void put32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline void put64(uint8_t *p, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint32_t get32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t get64(const uint8_t *p)
{
    return get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* ---- headers ------------------------------------------------------------------- */

/* The file header; `seal` is its checksum, which seeds those of frames, index and end. */
void k3_file_header_encode(const k3_trace_header *h, uint8_t out[HEADER_BYTES], uint64_t *seal);
int k3_file_header_decode(const char *file, const uint8_t in[HEADER_BYTES], k3_trace_header *h, uint64_t *seal, k3_err *err);

struct frame_header {
    uint32_t packed, raw;    /* bytes of the zstd frame that follows, and inside it */
    uint32_t steps;          /* that begin in this frame */
    uint32_t choices;
    bool continues;          /* the first batch belongs to a step that began earlier */
    uint64_t first_step;     /* step of the first batch */
    uint64_t choices_before; /* in earlier frames */
    uint64_t payload_sum;    /* XXH3 of the zstd frame */
};

void k3_frame_header_encode(const struct frame_header *h, uint64_t seal, uint8_t out[FRAME_BYTES]);
/* `where` names the frame in messages. */
int k3_frame_header_decode(const char *file, uint64_t offset, const uint8_t in[FRAME_BYTES], uint64_t seal,
                        struct frame_header *h, k3_err *err);

struct index_entry {
    uint64_t offset, first_step, choices_before;
};

struct end_record {
    uint64_t frames, steps, choices, index_at, file_bytes;
};

void k3_end_encode(const struct end_record *e, uint64_t seal, uint8_t out[END_BYTES]);
int k3_end_decode(const char *file, uint64_t offset, const uint8_t in[END_BYTES], uint64_t seal, struct end_record *e,
               k3_err *err);

/* ---- a frame in memory ------------------------------------------------------------ */

struct batch {
    uint32_t first_row, rows; /* in frame.row */
    uint32_t at, k;           /* choices at frame.expert[at .. at + rows*k) */
    uint32_t layer;
    bool new_step;
};

struct frame {
    struct batch *batch;
    k3_trace_row *row;
    uint16_t *expert;
    float *weight;      /* NULL if the trace has none */
    uint8_t *residency;
    uint32_t batches, rows, choices;
    uint32_t batch_room, row_room, choice_room;
    uint8_t *raw, *packed; /* payload before and after compression */
    size_t raw_room, packed_room;
    uint32_t *last_at, *last_k; /* [layers] scratch: the layer's previous row */
    void *zstd;                 /* ZSTD_CCtx or ZSTD_DCtx */
};

void k3_frame_free(struct frame *f);
/* Room for that many in all; K3_ESYS without memory. */
int k3_frame_reserve(struct frame *f, const k3_trace_header *h, uint32_t batches, uint32_t rows, uint32_t choices,
                  k3_err *err);
/* Compresses into f->packed and fills sizes, choices and payload_sum of *fh. */
int k3_frame_encode(struct frame *f, const k3_trace_header *h, struct frame_header *fh, k3_err *err);
/* The reverse, from fh->packed bytes in f->packed. `offset` is the frame's, for messages. */
int k3_frame_decode(struct frame *f, const k3_trace_header *h, const struct frame_header *fh, const char *file,
                 uint64_t offset, k3_err *err);

/* Grows *buf to at least `size` bytes. */
int k3_grow(void *buf, size_t *room, size_t size, k3_err *err);

#endif
