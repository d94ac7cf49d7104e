/* SPDX-License-Identifier: Apache-2.0 */
/* One frame of a trace: batches in memory, five sections packed by zstd.
 *
 * A choice is one symbol, its place in the layer's previous row or NEW, and for
 * NEW its number in ceil(log2 experts) bits. zstd codes the symbols by their
 * frequency; each section ends a zstd block, so each has a table of its own. */
#include "format.h"

#include <stdlib.h>

#include <xxhash.h>
#include <zstd.h>

enum { NEW = 255, SECTIONS = 5, LEVEL = 3 };
enum { STRUCTURE, SYMBOLS, NUMBERS, RESIDENCY, WEIGHTS };

int k3_grow(void *buf, size_t *room, size_t size, k3_err *err)
{
    if (size <= *room)
        return 0;
    size_t want = size > *room + *room / 2 ? size : *room + *room / 2;
    void *old, *p;
    memcpy(&old, buf, sizeof old);
    p = realloc(old, want);
    if (!p)
        return k3_fail(err, K3_ESYS, "out of memory for %zu bytes of a trace", want);
    memcpy(buf, &p, sizeof p);
    *room = want;
    return 0;
}

void k3_frame_free(struct frame *f)
{
    free(f->batch);
    free(f->row);
    free(f->expert);
    free(f->weight);
    free(f->residency);
    free(f->raw);
    free(f->packed);
    free(f->last_at);
    free(f->last_k);
    *f = (struct frame){0};
}

static int reserve(void *array, uint32_t *room, uint32_t want, size_t item, k3_err *err)
{
    size_t bytes = *room * item;
    int status = k3_grow(array, &bytes, want * item, err);
    *room = (uint32_t)(bytes / item);
    return status;
}

int k3_frame_reserve(struct frame *f, const k3_trace_header *h, uint32_t batches, uint32_t rows, uint32_t choices,
                  k3_err *err)
{
    uint32_t weights = f->choice_room, residency = f->choice_room;
    size_t none[2] = {0, 0}, layers = (size_t)h->shape.layers * sizeof *f->last_at;
    if ((!f->last_at && k3_grow(&f->last_at, &none[0], layers, err)) ||
        (!f->last_k && k3_grow(&f->last_k, &none[1], layers, err)))
        return K3_ESYS;
    if (batches > f->batch_room && reserve(&f->batch, &f->batch_room, batches, sizeof *f->batch, err))
        return K3_ESYS;
    if (rows > f->row_room && reserve(&f->row, &f->row_room, rows, sizeof *f->row, err))
        return K3_ESYS;
    if (choices <= f->choice_room)
        return 0;
    if ((h->weights && reserve(&f->weight, &weights, choices, sizeof *f->weight, err)) ||
        (h->residency && reserve(&f->residency, &residency, choices, 1, err)))
        return K3_ESYS;
    return reserve(&f->expert, &f->choice_room, choices, sizeof *f->expert, err);
}

static uint32_t number_bits(int experts)
{
    uint32_t bits = 1;
    while (1u << bits < (uint32_t)experts)
        bits++;
    return bits;
}

/* ---- variable-length integers: 7 bits a byte, low first, the top bit set on all but the last ---- */

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        *p++ = (uint8_t)(v | 128);
    *p++ = (uint8_t)v;
    return p;
}

struct bytes {
    const uint8_t *at, *end;
    bool bad; /* read past the end, or a number too large */
};

static uint64_t get_varint(struct bytes *b)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (b->at == b->end)
            break;
        uint8_t c = *b->at++;
        if (shift == 63 && c > 1)
            break; /* more than 64 bits */
        v |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return v;
    }
    b->bad = true;
    return 0;
}

/* ---- encoding ------------------------------------------------------------------- */

/* Structure: 0 starts a step (rows, then per row sequence and position as
 * differences, and the phase); 1 + zigzag(layer - expected) is a batch, followed by zigzag(k - topk). */
static uint8_t *put_structure(const struct frame *f, const k3_trace_header *h, uint8_t *p)
{
    k3_trace_row last = {0};
    int64_t layer = h->shape.first;
    for (uint32_t i = 0; i < f->batches; i++) {
        const struct batch *b = &f->batch[i];
        if (b->new_step || !i) {
            *p++ = 0;
            p = put_varint(p, b->rows);
            for (uint32_t r = 0; r < b->rows; r++) {
                const k3_trace_row *row = &f->row[b->first_row + r];
                p = put_varint(p, zigzag((int64_t)row->sequence - last.sequence));
                p = put_varint(p, zigzag((int64_t)(row->position - last.position)));
                *p++ = (uint8_t)row->phase;
                last = *row;
            }
            layer = h->shape.first;
        }
        p = put_varint(p, 1 + zigzag(b->layer - layer));
        p = put_varint(p, zigzag((int64_t)b->k - h->shape.topk));
        layer = b->layer + 1;
    }
    return p;
}

/* Place of `expert` among the first 255 of the previous row, or NEW. */
static uint8_t symbol_of(const uint16_t *row, uint32_t k, uint16_t expert)
{
    k = k < NEW ? k : NEW;
    for (uint32_t i = 0; i < k; i++)
        if (row[i] == expert)
            return (uint8_t)i;
    return NEW;
}

struct bits {
    uint8_t *at;
    uint64_t word;
    uint32_t fill;
};

static void put_bits(struct bits *b, uint32_t v, uint32_t n)
{
    b->word |= (uint64_t)v << b->fill;
    b->fill += n;
    for (; b->fill >= 8; b->fill -= 8, b->word >>= 8)
        *b->at++ = (uint8_t)b->word;
}

static uint8_t *flush_bits(struct bits *b)
{
    if (b->fill)
        *b->at++ = (uint8_t)b->word;
    return b->at;
}

/* Symbols to `sym`, numbers of the new ones to `p`; returns the end of those. */
static uint8_t *put_choices(struct frame *f, const k3_trace_header *h, uint8_t *sym, uint8_t *p)
{
    uint32_t nbits = number_bits(h->shape.experts);
    struct bits bits = {.at = p};
    memset(f->last_k, 0, (size_t)h->shape.layers * sizeof *f->last_k);
    for (uint32_t i = 0; i < f->batches; i++) {
        const struct batch *b = &f->batch[i];
        const uint16_t *e = f->expert + b->at, *last = f->expert + f->last_at[b->layer] * (f->last_k[b->layer] > 0);
        uint32_t last_k = f->last_k[b->layer];
        for (uint32_t r = 0; r < b->rows; r++, last = e, last_k = b->k, e += b->k)
            for (uint32_t j = 0; j < b->k; j++) {
                uint8_t s = *sym++ = symbol_of(last, last_k, e[j]);
                if (s == NEW)
                    put_bits(&bits, e[j], nbits);
            }
        f->last_at[b->layer] = b->at + (b->rows - 1) * b->k;
        f->last_k[b->layer] = b->k;
    }
    return flush_bits(&bits);
}

static uint8_t *put_residency(const struct frame *f, uint8_t *p)
{
    struct bits bits = {.at = p};
    for (uint32_t i = 0; i < f->choices; i++)
        put_bits(&bits, f->residency[i], 1);
    return flush_bits(&bits);
}

/* Byte planes, the high one first: signs and exponents compress, fractions do not. */
static uint8_t *put_weights(const struct frame *f, uint8_t *p)
{
    for (int plane = 3; plane >= 0; plane--)
        for (uint32_t i = 0; i < f->choices; i++) {
            uint32_t v;
            memcpy(&v, &f->weight[i], 4);
            *p++ = (uint8_t)(v >> 8 * plane);
        }
    return p;
}

static int compress(struct frame *f, const size_t *section, size_t raw, struct frame_header *fh, k3_err *err)
{
    if (!f->zstd && !(f->zstd = ZSTD_createCCtx()))
        return k3_fail(err, K3_ESYS, "out of memory for compression");
    int status = k3_grow(&f->packed, &f->packed_room, ZSTD_compressBound(raw) + 64, err);
    if (status)
        return status;
    ZSTD_CCtx_reset(f->zstd, ZSTD_reset_session_only);
    ZSTD_CCtx_setParameter(f->zstd, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setPledgedSrcSize(f->zstd, raw);
    ZSTD_outBuffer out = {.dst = f->packed, .size = f->packed_room};
    size_t from = 0, left = 0;
    for (int i = 0; i <= SECTIONS; i++) {
        size_t size = i ? section[i - 1] : 4 * SECTIONS;
        ZSTD_inBuffer in = {.src = f->raw + from, .size = size};
        left = ZSTD_compressStream2(f->zstd, &out, &in, i == SECTIONS ? ZSTD_e_end : ZSTD_e_flush);
        if (left)
            return k3_fail(err, K3_ESYS, "compression failed: %s",
                           ZSTD_isError(left) ? ZSTD_getErrorName(left) : "no room");
        from += size;
    }
    fh->raw = (uint32_t)raw;
    fh->packed = (uint32_t)out.pos;
    fh->choices = f->choices;
    fh->payload_sum = XXH3_64bits(f->packed, out.pos);
    return 0;
}

int k3_frame_encode(struct frame *f, const k3_trace_header *h, struct frame_header *fh, k3_err *err)
{
    size_t n = f->choices, most = 4 * SECTIONS + 16 + 14 * (size_t)f->batches + 24 * (size_t)f->rows + n + 2 * n + 8 +
                                  (h->residency ? n / 8 + 1 : 0) + (h->weights ? 4 * n : 0);
    /* a step that goes on in this frame repeats its rows once */
    int status = k3_grow(&f->raw, &f->raw_room, most, err);
    if (status)
        return status;
    uint8_t *at[SECTIONS + 1] = {f->raw + 4 * SECTIONS};
    at[SYMBOLS] = put_structure(f, h, at[STRUCTURE]);
    at[NUMBERS] = at[SYMBOLS] + n;
    at[RESIDENCY] = put_choices(f, h, at[SYMBOLS], at[NUMBERS]);
    at[WEIGHTS] = h->residency ? put_residency(f, at[RESIDENCY]) : at[RESIDENCY];
    at[SECTIONS] = h->weights ? put_weights(f, at[WEIGHTS]) : at[WEIGHTS];
    size_t section[SECTIONS];
    for (int i = 0; i < SECTIONS; i++) {
        section[i] = (size_t)(at[i + 1] - at[i]);
        put32(f->raw + 4 * i, (uint32_t)section[i]);
    }
    return compress(f, section, (size_t)(at[SECTIONS] - f->raw), fh, err);
}

/* ---- decoding ------------------------------------------------------------------- */

struct damage {
    const char *file;
    uint64_t offset;
    k3_err *err;
};

static int damaged(const struct damage *d, const char *what)
{
    return k3_fail_at(d->err, K3_EDATA, d->file, NULL, (int64_t)d->offset, "a frame is damaged: %s", what);
}

/* The payload must be one zstd frame of exactly the stated sizes: zstd itself
 * would accept several frames, skippable ones, or one of another size. */
static int decompress(struct frame *f, const struct frame_header *fh, const struct damage *d)
{
    if (!f->zstd && !(f->zstd = ZSTD_createDCtx()))
        return k3_fail(d->err, K3_ESYS, "out of memory for decompression");
    if (k3_grow(&f->raw, &f->raw_room, fh->raw, d->err))
        return K3_ESYS;
    if (ZSTD_findFrameCompressedSize(f->packed, fh->packed) != fh->packed)
        return damaged(d, "its payload is not one zstd frame");
    if (ZSTD_getFrameContentSize(f->packed, fh->packed) != fh->raw)
        return damaged(d, "its payload has another size than its header says");
    size_t got = ZSTD_decompressDCtx(f->zstd, f->raw, fh->raw, f->packed, fh->packed);
    if (ZSTD_isError(got))
        return damaged(d, ZSTD_getErrorName(got));
    return got == fh->raw ? 0 : damaged(d, "its payload has another size than its header says");
}

static int get_rows(struct frame *f, const k3_trace_header *h, struct bytes *in, uint32_t rows, k3_trace_row *last,
                    k3_err *err)
{
    if (k3_frame_reserve(f, h, 0, f->rows + rows, 0, err))
        return K3_ESYS;
    for (uint32_t r = 0; r < rows; r++) {
        /* unsigned: a difference may be anything, and what would be below 0 is far too large */
        uint64_t sequence = last->sequence + (uint64_t)unzigzag(get_varint(in));
        uint64_t position = last->position + (uint64_t)unzigzag(get_varint(in)), phase = get_varint(in);
        if (in->bad || sequence > UINT32_MAX || position >> 48 || phase >= K3_PHASE_COUNT)
            return K3_EDATA;
        *last = (k3_trace_row){.position = position, .sequence = (uint32_t)sequence, .phase = (uint32_t)phase};
        f->row[f->rows++] = *last;
    }
    return 0;
}

static int get_structure(struct frame *f, const k3_trace_header *h, struct bytes in, const struct frame_header *fh,
                         const struct damage *d)
{
    k3_trace_row last = {0};
    uint64_t layer = 0, first = (uint64_t)h->shape.first;
    uint32_t rows = 0, steps = 0;
    bool fresh = false;
    f->batches = f->rows = f->choices = 0;
    while (in.at < in.end) {
        uint64_t v = get_varint(&in);
        if (!v) {
            uint64_t n = get_varint(&in);
            if (in.bad || fresh || n < 1 || n > K3_TRACE_MAX_ROWS)
                return damaged(d, "a step has no layers, or not 1 to 65536 rows");
            int status = get_rows(f, h, &in, rows = (uint32_t)n, &last, d->err);
            if (status)
                return status == K3_ESYS ? status : damaged(d, "a step has a row whose sequence, position or phase cannot be");
            layer = first;
            fresh = true;
            continue;
        }
        layer += (uint64_t)unzigzag(v - 1);
        uint64_t k = (uint64_t)unzigzag(get_varint(&in)) + (uint64_t)h->shape.topk;
        if (in.bad || !rows || layer < first || layer >= (uint64_t)h->shape.layers || k < 1 ||
            k > K3_TRACE_MAX_CHOICES || k * rows > fh->choices - f->choices)
            return damaged(d, "a layer is none that has experts, comes before any step, or has more choices than the frame");
        if (k3_frame_reserve(f, h, f->batches + 1, 0, 0, d->err))
            return K3_ESYS;
        bool new_step = fresh && (f->batches || !fh->continues);
        f->batch[f->batches++] = (struct batch){.first_row = f->rows - rows,
                                                .rows = rows,
                                                .at = f->choices,
                                                .k = (uint32_t)k,
                                                .layer = (uint32_t)layer,
                                                .new_step = new_step};
        f->choices += (uint32_t)k * rows;
        steps += new_step;
        fresh = false;
        layer++;
    }
    if (in.bad || fresh || f->choices != fh->choices || steps != fh->steps)
        return damaged(d, "its steps and choices are not those of its header");
    return 0;
}

static int get_choices(struct frame *f, const k3_trace_header *h, const uint8_t *sym, struct bytes numbers,
                       const struct damage *d)
{
    uint32_t nbits = number_bits(h->shape.experts), fill = 0, mask = (1u << nbits) - 1;
    uint64_t word = 0;
    memset(f->last_k, 0, (size_t)h->shape.layers * sizeof *f->last_k);
    for (uint32_t i = 0; i < f->batches; i++) {
        const struct batch *b = &f->batch[i];
        uint16_t *e = f->expert + b->at;
        const uint16_t *last = f->expert + f->last_at[b->layer] * (f->last_k[b->layer] > 0);
        uint32_t last_k = f->last_k[b->layer];
        for (uint32_t r = 0; r < b->rows; r++, last = e, last_k = b->k, e += b->k)
            for (uint32_t j = 0; j < b->k; j++) {
                uint8_t s = *sym++;
                if (s < last_k && s != NEW) {
                    e[j] = last[s];
                    continue;
                }
                for (; fill < nbits && numbers.at < numbers.end; fill += 8)
                    word |= (uint64_t)*numbers.at++ << fill;
                uint32_t number = (uint32_t)word & mask;
                if (s != NEW || fill < nbits || number >= (uint32_t)h->shape.experts)
                    return damaged(d, "a choice is no expert of this model");
                e[j] = (uint16_t)number;
                word >>= nbits;
                fill -= nbits;
            }
        f->last_at[b->layer] = b->at + (b->rows - 1) * b->k;
        f->last_k[b->layer] = b->k;
    }
    return numbers.at == numbers.end && fill < 8 && !word ? 0 : damaged(d, "its numbers are more or fewer than its choices need");
}

static void get_weights(struct frame *f, const uint8_t *p)
{
    size_t n = f->choices;
    for (size_t i = 0; i < n; i++) {
        uint32_t v = (uint32_t)p[i] << 24 | (uint32_t)p[n + i] << 16 | (uint32_t)p[2 * n + i] << 8 | p[3 * n + i];
        memcpy(&f->weight[i], &v, 4);
    }
}

int k3_frame_decode(struct frame *f, const k3_trace_header *h, const struct frame_header *fh, const char *file,
                 uint64_t offset, k3_err *err)
{
    const struct damage d = {file, offset, err};
    if (XXH3_64bits(f->packed, fh->packed) != fh->payload_sum)
        return damaged(&d, "its checksum does not match");
    int status = decompress(f, fh, &d);
    if (status)
        return status;
    size_t n = fh->choices, sum = 4 * SECTIONS, section[SECTIONS];
    for (int i = 0; i < SECTIONS; i++)
        sum += section[i] = fh->raw >= 4 * SECTIONS ? get32(f->raw + 4 * i) : 0;
    if (sum != fh->raw || section[SYMBOLS] != n || section[RESIDENCY] != (h->residency ? (n + 7) / 8 : 0) ||
        section[WEIGHTS] != (h->weights ? 4 * n : 0))
        return damaged(&d, "the lengths of its five sections are not those its choices need");
    if (k3_frame_reserve(f, h, 1, 1, fh->choices, err))
        return K3_ESYS;
    const uint8_t *at[SECTIONS + 1] = {f->raw + 4 * SECTIONS};
    for (int i = 0; i < SECTIONS; i++)
        at[i + 1] = at[i] + section[i];
    status = get_structure(f, h, (struct bytes){.at = at[STRUCTURE], .end = at[SYMBOLS]}, fh, &d);
    if (!status)
        status = get_choices(f, h, at[SYMBOLS], (struct bytes){.at = at[NUMBERS], .end = at[RESIDENCY]}, &d);
    if (status)
        return status;
    for (size_t i = 0; i < n && h->residency; i++)
        f->residency[i] = at[RESIDENCY][i / 8] >> (i % 8) & 1;
    if (h->weights)
        get_weights(f, at[WEIGHTS]);
    return 0;
}
