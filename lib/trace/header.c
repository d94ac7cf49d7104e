/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed-size records of .k3t: file header, frame header, end record. */
#include "format.h"

#include <inttypes.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

const char *k3_phase_name(uint32_t phase)
{
    static const char *const names[] = {"prefill", "decode", "draft"};
    return phase < K3_PHASE_COUNT ? names[phase] : "unknown";
}

int k3_phase(const char *name)
{
    for (int i = 0; i < K3_PHASE_COUNT; i++)
        if (!strcmp(name, k3_phase_name((uint32_t)i)))
            return i;
    return -1;
}

int k3_trace_check_header(const k3_trace_header *h, k3_err *err)
{
    const k3_shape *s = &h->shape;
    if (s->layers < 1 || s->layers > 65535)
        return k3_fail(err, K3_EUSAGE, "a trace cannot have %d layers (1 to 65535)", s->layers);
    if (s->first < 0 || s->first >= s->layers)
        return k3_fail(err, K3_EUSAGE, "the first layer with experts cannot be %d (0 to %d)", s->first, s->layers - 1);
    if (s->experts < 1 || s->experts > 65535)
        return k3_fail(err, K3_EUSAGE, "a trace cannot have %d experts a layer (1 to 65535)", s->experts);
    if (s->topk < 1 || s->topk > s->experts)
        return k3_fail(err, K3_EUSAGE, "a position cannot use %d experts (1 to %d)", s->topk, s->experts);
    if ((int64_t)(s->layers - s->first) * s->experts > INT32_MAX)
        return k3_fail(err, K3_EUSAGE, "%d layers of %d experts are too many (at most %d in all)", s->layers - s->first, s->experts, INT32_MAX);
    if (h->expert_bytes < 1 || h->expert_bytes > 1ull << 48)
        return k3_fail(err, K3_EUSAGE, "an expert cannot have %" PRIu64 " bytes (1 to %llu)", h->expert_bytes, 1ull << 48);
    if (h->policy < -1 || h->policy >= K3_POLICY_COUNT)
        return k3_fail(err, K3_EUSAGE, "cache policy %d is not known (0 lru, 1 layers, 2 lfu, -1 none)", h->policy);
    if (!memchr(h->source, 0, sizeof h->source))
        return k3_fail(err, K3_EUSAGE, "the source of a trace has at most %d bytes", K3_TRACE_SOURCE - 1);
    for (const char *p = h->source; *p; p++)
        if ((unsigned char)*p < 32 || *p == 127)
            return k3_fail(err, K3_EUSAGE, "the source of a trace is one line of plain text");
    return 0;
}

void k3_file_header_encode(const k3_trace_header *h, uint8_t out[HEADER_BYTES], uint64_t *seal)
{
    memset(out, 0, HEADER_BYTES);
    memcpy(out, TRACE_MAGIC, 8);
    put32(out + 8, FORMAT_VERSION);
    put32(out + 12, HEADER_BYTES);
    put64(out + 16, h->fingerprint.lo);
    put64(out + 24, h->fingerprint.hi);
    put32(out + 32, (uint32_t)h->shape.layers);
    put32(out + 36, (uint32_t)h->shape.first);
    put32(out + 40, (uint32_t)h->shape.experts);
    put32(out + 44, (uint32_t)h->shape.topk);
    put64(out + 48, h->expert_bytes);
    put32(out + 56, (h->weights ? 1u : 0) | (h->residency ? 2u : 0));
    put32(out + 60, (uint32_t)h->policy);
    put32(out + 64, h->slots);
    strncpy((char *)out + 72, h->source, K3_TRACE_SOURCE);
    *seal = XXH3_64bits(out, HEADER_BYTES - 8);
    put64(out + HEADER_BYTES - 8, *seal);
}

int k3_file_header_decode(const char *file, const uint8_t in[HEADER_BYTES], k3_trace_header *h, uint64_t *seal, k3_err *err)
{
    uint32_t version = get32(in + 8), flags = get32(in + 56);
    k3_err why = {0};
    if (memcmp(in, TRACE_MAGIC, 8))
        return k3_fail_at(err, K3_EDATA, file, NULL, 0, "not a trace: the first bytes are not those of a .k3t file");
    if (version != FORMAT_VERSION)
        return k3_fail_at(err, K3_EDATA, file, NULL, 8, "the trace has version %u, this program reads version %d",
                          version, FORMAT_VERSION);
    *seal = XXH3_64bits(in, HEADER_BYTES - 8);
    if (*seal != get64(in + HEADER_BYTES - 8))
        return k3_fail_at(err, K3_EDATA, file, NULL, 0,
                          "the header is damaged: checksum %016" PRIx64 ", computed %016" PRIx64,
                          get64(in + HEADER_BYTES - 8), *seal);
    *h = (k3_trace_header){
        .shape = {.layers = (int)get32(in + 32),
                  .first = (int)get32(in + 36),
                  .experts = (int)get32(in + 40),
                  .topk = (int)get32(in + 44)},
        .expert_bytes = get64(in + 48),
        .fingerprint = {.lo = get64(in + 16), .hi = get64(in + 24)},
        .weights = flags & 1,
        .residency = flags & 2,
        .policy = (int)get32(in + 60),
        .slots = get32(in + 64),
    };
    memcpy(h->source, in + 72, K3_TRACE_SOURCE);
    if (get32(in + 12) != HEADER_BYTES || flags > 3 || get32(in + 68))
        return k3_fail_at(err, K3_EDATA, file, NULL, 12, "the header uses fields that version %d does not have",
                          version);
    if (k3_trace_check_header(h, &why))
        return k3_fail_at(err, K3_EDATA, file, NULL, 0, "%s", why.text);
    return 0;
}

void k3_frame_header_encode(const struct frame_header *h, uint64_t seal, uint8_t out[FRAME_BYTES])
{
    put32(out, MAGIC_FRAME);
    put32(out + 4, h->packed);
    put32(out + 8, h->raw);
    put32(out + 12, h->steps);
    put32(out + 16, h->choices);
    put32(out + 20, h->continues);
    put64(out + 24, h->first_step);
    put64(out + 32, h->choices_before);
    put64(out + 40, h->payload_sum);
    put64(out + 48, XXH3_64bits_withSeed(out, FRAME_BYTES - 8, seal));
}

int k3_frame_header_decode(const char *file, uint64_t offset, const uint8_t in[FRAME_BYTES], uint64_t seal,
                        struct frame_header *h, k3_err *err)
{
    uint64_t sum = XXH3_64bits_withSeed(in, FRAME_BYTES - 8, seal);
    if (sum != get64(in + FRAME_BYTES - 8))
        return k3_fail_at(err, K3_EDATA, file, NULL, (int64_t)offset,
                          "a frame header is damaged or from another trace: checksum %016" PRIx64
                          ", computed %016" PRIx64,
                          get64(in + FRAME_BYTES - 8), sum);
    *h = (struct frame_header){
        .packed = get32(in + 4),
        .raw = get32(in + 8),
        .steps = get32(in + 12),
        .choices = get32(in + 16),
        .continues = get32(in + 20) == 1,
        .first_step = get64(in + 24),
        .choices_before = get64(in + 32),
        .payload_sum = get64(in + 40),
    };
    if (get32(in + 20) > 1 || !h->packed || h->packed > MAX_RAW + MAX_RAW / 64 || !h->raw || h->raw > MAX_RAW ||
        !h->choices || h->choices > FRAME_CHOICES + K3_TRACE_MAX_CHOICES)
        return k3_fail_at(err, K3_EDATA, file, NULL, (int64_t)offset,
                          "a frame of %u bytes, %u unpacked, with %u choices is not possible (1 to %d, %d and %d)", h->packed, h->raw,
                          h->choices, MAX_RAW + MAX_RAW / 64, MAX_RAW, FRAME_CHOICES + K3_TRACE_MAX_CHOICES);
    return 0;
}

void k3_end_encode(const struct end_record *e, uint64_t seal, uint8_t out[END_BYTES])
{
    memset(out, 0, END_BYTES);
    put32(out, MAGIC_END);
    put64(out + 8, e->frames);
    put64(out + 16, e->steps);
    put64(out + 24, e->choices);
    put64(out + 32, e->index_at);
    put64(out + 40, e->file_bytes);
    put64(out + 56, XXH3_64bits_withSeed(out, END_BYTES - 8, seal));
}

int k3_end_decode(const char *file, uint64_t offset, const uint8_t in[END_BYTES], uint64_t seal, struct end_record *e,
               k3_err *err)
{
    uint64_t sum = XXH3_64bits_withSeed(in, END_BYTES - 8, seal);
    if (get32(in) != MAGIC_END || sum != get64(in + END_BYTES - 8) || get32(in + 4) || get64(in + 48))
        return k3_fail_at(err, K3_EDATA, file, NULL, (int64_t)offset, "the end record is damaged");
    *e = (struct end_record){
        .frames = get64(in + 8),
        .steps = get64(in + 16),
        .choices = get64(in + 24),
        .index_at = get64(in + 32),
        .file_bytes = get64(in + 40),
    };
    return 0;
}
