/* SPDX-License-Identifier: Apache-2.0 */
/* .k3t: nothing damaged, moved, joined, forged or foreign is believed. */
#include "trace_files.h"

#include <xxhash.h>
#include <zstd.h>

TestSuite(trace_damage, .init = setup, .fini = teardown);

Test(trace_damage, a_cut_at_any_byte_is_an_error)
{
    k3_trace_header h = header(true, true);
    write_trace(file, &h, 8, false);
    size_t size;
    char *data = slurp(&size);
    for (size_t n = 0; n < size; n++) {
        k3_err err;
        spill(data, n);
        cr_assert_eq(read_all(&err), K3_EDATA, "%zu of %zu bytes read as a whole trace", n, size);
        cr_assert(strstr(err.text, file) == err.text && !strchr(err.text, '\n'), "%s", err.text);
        cr_assert(n < HEADER_BYTES || strstr(err.text, "cut off"), "%zu bytes: %s", n, err.text);
    }
    free(data);
}

Test(trace_damage, a_flipped_bit_anywhere_is_an_error)
{
    k3_trace_header h = header(true, true);
    write_trace(file, &h, 8, false);
    size_t size;
    char *data = slurp(&size);
    for (size_t i = 0; i < size; i++) {
        k3_err err;
        char bit = (char)(1 << i % 8);
        data[i] = (char)(data[i] ^ bit);
        spill(data, size);
        cr_assert_eq(read_all(&err), K3_EDATA, "bit %zu of byte %zu flipped unnoticed", i % 8, i);
        cr_assert(strstr(err.text, file) == err.text, "%s", err.text);
        data[i] = (char)(data[i] ^ bit);
    }
    free(data);
}

Test(trace_damage, frames_cannot_be_moved)
{
    /* lost, doubled and swapped frames, and a frame of another trace */
    k3_trace_header h = header(false, false);
    write_trace(file, &h, 9000, false);
    size_t size;
    char *data = slurp(&size), *bad = malloc(2 * size);
    uint32_t one = FRAME_BYTES + get32((uint8_t *)data + HEADER_BYTES + 4);
    uint32_t two = FRAME_BYTES + get32((uint8_t *)data + HEADER_BYTES + one + 4);
    k3_err err;
    memcpy(bad, data, HEADER_BYTES);
    memcpy(bad + HEADER_BYTES, data + HEADER_BYTES + one, size - HEADER_BYTES - one);
    spill(bad, size - one);
    cr_assert_eq(read_all(&err), K3_EDATA, "a lost frame");
    memcpy(bad, data, HEADER_BYTES + one);
    memcpy(bad + HEADER_BYTES + one, data + HEADER_BYTES, size - HEADER_BYTES);
    spill(bad, size + one);
    cr_assert_eq(read_all(&err), K3_EDATA, "a doubled frame");
    memcpy(bad + HEADER_BYTES, data + HEADER_BYTES + one, two);
    memcpy(bad + HEADER_BYTES + two, data + HEADER_BYTES, one);
    memcpy(bad + HEADER_BYTES + two + one, data + HEADER_BYTES + one + two, size - HEADER_BYTES - one - two);
    spill(bad, size);
    cr_assert_eq(read_all(&err), K3_EDATA, "swapped frames");
    h.slots++;
    write_trace(file, &h, 9000, false);
    size_t other_size;
    char *other = slurp(&other_size);
    memcpy(data, other, HEADER_BYTES);
    spill(data, size);
    cr_assert_eq(read_all(&err), K3_EDATA);
    cr_assert(strstr(err.text, "another trace"), "%s", err.text);
    free(other);
    free(data);
    free(bad);
}

/* A file of one frame whose payload is given, every checksum right. */
static void forge(const k3_trace_header *h, const void *payload, size_t packed, uint32_t raw, uint32_t choices)
{
    uint8_t buf[4096];
    uint64_t seal;
    k3_file_header_encode(h, buf, &seal);
    struct frame_header fh = {.packed = (uint32_t)packed,
                              .raw = raw,
                              .steps = 1,
                              .choices = choices,
                              .payload_sum = XXH3_64bits(payload, packed)};
    k3_frame_header_encode(&fh, seal, buf + HEADER_BYTES);
    memcpy(buf + HEADER_BYTES + FRAME_BYTES, payload, packed);
    spill(buf, HEADER_BYTES + FRAME_BYTES + packed);
}

/* Packs a payload with the given structure bytes and 3 choices. */
static size_t pack_payload(const uint8_t *structure, size_t n, const uint8_t *rest, size_t m, uint8_t *out,
                           uint32_t *raw)
{
    uint8_t buf[256] = {0};
    put32(buf, (uint32_t)n);
    put32(buf + 4, 3);
    put32(buf + 8, (uint32_t)(m - 3));
    memcpy(buf + 20, structure, n);
    memcpy(buf + 20 + n, rest, m);
    *raw = (uint32_t)(20 + n + m);
    return ZSTD_compress(out, 1024, buf, *raw, 1);
}

Test(trace_damage, nonsense_under_good_checksums_is_refused)
{
    static const uint8_t good[] = {0, 1, 0, 0, 0, 1, 0};             /* one row; layer 1, k = topk */
    static const uint8_t choices[] = {255, 255, 255, 0x41, 0x30, 0}; /* three 6-bit numbers: 1, 1, 3 */
    static const struct {
        const char *what;
        uint8_t s[24];
        size_t n;
    } bad[] = {
        {"no step before a layer", {1, 0}, 2},
        {"a step without layers", {0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0}, 12},
        {"no rows", {0, 0, 1, 0}, 4},
        {"a phase that does not exist", {0, 1, 0, 0, 3, 1, 0}, 7},
        {"a negative sequence", {0, 1, 1, 0, 0, 1, 0}, 7},
        {"a negative position", {0, 1, 0, 1, 0, 1, 0}, 7},
        {"a layer below the first", {0, 1, 0, 0, 0, 2, 0}, 7},
        {"a layer beyond the last", {0, 1, 0, 0, 0, 9, 0}, 7},
        {"more choices than counted", {0, 1, 0, 0, 0, 1, 2}, 7},
        {"fewer choices than counted", {0, 1, 0, 0, 0, 1, 1}, 7},
        {"a number that goes on for ever", {0, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255}, 12},
        {"a structure cut short", {0, 1, 0, 0, 0, 1}, 6},
        {"a difference of sequences that leaves 64 bits", {0, 2, 2, 0, 0, 254, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0, 0, 1, 0}, 19},
        {"a difference of layers that leaves 64 bits", {0, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0}, 16},
        {"a difference of k that leaves 64 bits", {0, 1, 0, 0, 0, 1, 254, 255, 255, 255, 255, 255, 255, 255, 255, 1}, 16},
        {"a number of 70 bits", {0, 1, 128, 128, 128, 128, 128, 128, 128, 128, 128, 2, 0, 0, 1, 0}, 16},
        {"millions of rows", {0, 255, 255, 255, 127, 0}, 6},
    };
    k3_trace_header h = header(false, false);
    uint8_t packed[1024];
    uint32_t raw;
    k3_err err;
    size_t n = pack_payload(good, sizeof good, choices, sizeof choices, packed, &raw);
    forge(&h, packed, n, raw, 3);
    cr_assert(read_all(&err) == K3_EDATA && strstr(err.text, "no end record"), "the forged frame itself: %s",
              err.text);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        n = pack_payload(bad[i].s, bad[i].n, choices, sizeof choices, packed, &raw);
        forge(&h, packed, n, raw, 3);
        cr_assert(read_all(&err) == K3_EDATA && strstr(err.text, "a frame is damaged"), "%s: %s", bad[i].what,
                  err.text);
    }
    static const struct {
        const char *what;
        uint8_t c[8];
        size_t n;
    } wrong[] = {
        {"an expert beyond the last", {255, 255, 255, 0x7f, 0x30, 0}, 6},
        {"a place in a row that is not there", {0, 255, 255, 0x41, 0, 0}, 6},
        {"numbers cut short", {255, 255, 255, 0x41, 0x30}, 5},
        {"numbers left over", {255, 255, 255, 0x41, 0x30, 0, 0}, 7},
        {"bits left over", {255, 255, 255, 0x41, 0x30, 4}, 6},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        n = pack_payload(good, sizeof good, wrong[i].c, wrong[i].n, packed, &raw);
        forge(&h, packed, n, raw, 3);
        cr_assert(read_all(&err) == K3_EDATA && strstr(err.text, "a frame is damaged"), "%s: %s", wrong[i].what,
                  err.text);
    }
}

/* What a zstd decoder by itself lets pass, or stumbles over. */
Test(trace_damage, payloads_that_are_not_one_zstd_frame)
{
    static const uint8_t good[] = {0, 1, 0, 0, 0, 1, 0}, choices[] = {255, 255, 255, 0x41, 0x30, 0};
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 'k', '3', 't', '!'};
    k3_trace_header h = header(false, false);
    uint8_t packed[1024], twice[2048];
    uint32_t raw;
    k3_err err;
    size_t n = pack_payload(good, sizeof good, choices, sizeof choices, packed, &raw);
    memcpy(twice, packed, n);
    memcpy(twice + n, skippable, sizeof skippable);
    forge(&h, twice, n + sizeof skippable, raw, 3);
    cr_assert(read_all(&err) == K3_EDATA && strstr(err.text, "not one zstd frame"), "%s", err.text);
    memcpy(twice + n, packed, n);
    forge(&h, twice, 2 * n, 2 * raw, 3);
    cr_assert(read_all(&err) == K3_EDATA && strstr(err.text, "not one zstd frame"), "%s", err.text);
    memcpy(twice, skippable, sizeof skippable);
    memcpy(twice + sizeof skippable, packed, n);
    forge(&h, twice, n + sizeof skippable, raw, 3);
    cr_assert(read_all(&err) == K3_EDATA && strstr(err.text, "not one zstd frame"), "%s", err.text);
    forge(&h, packed, n, raw + 1, 3);
    cr_assert(read_all(&err) == K3_EDATA && strstr(err.text, "another size"), "%s", err.text);
    forge(&h, packed, n - 1, raw, 3);
    cr_assert_eq(read_all(&err), K3_EDATA);
    /* any one byte of the payload changed, its checksum made right again */
    for (size_t i = 0; i < n; i++) {
        memcpy(twice, packed, n);
        twice[i] ^= 0x5a;
        forge(&h, twice, n, raw, 3);
        cr_assert_eq(read_all(&err), K3_EDATA, "payload byte %zu", i);
    }
}

Test(trace_damage, foreign_files_are_named)
{
    static const struct {
        const char *data;
        size_t size;
        const char *says;
    } foreign[] = {
        {"", 0, "empty"},
        {"\x28\xb5\x2f\xfd....", 8, "zstd -dc"},
        {"\x1f\x8b......", 8, "gzip -dc"},
        {"\x50\x2a\x4d\x18\0\0\0\0", 8, "skippable"},
        {"\1\0\0\0\362\1\0\0", 8, "k3-trace import"},
        {"a text file\n", 12, "not a trace"},
        {"\211K3", 3, "not a trace"},
    };
    k3_err err;
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++) {
        spill(foreign[i].data, foreign[i].size);
        cr_assert_eq(read_all(&err), K3_EDATA);
        cr_assert(strstr(err.text, foreign[i].says), "%s", err.text);
    }
    unlink(file);
    cr_assert_eq(read_all(&err), K3_ESYS);
}

Test(trace_damage, joined_files_are_refused)
{
    k3_trace_header h = header(false, false);
    write_trace(file, &h, 3, false);
    size_t size;
    char *data = slurp(&size), *two = malloc(2 * size);
    memcpy(two, data, size);
    memcpy(two + size, data, size);
    spill(two, 2 * size);
    k3_err err;
    cr_assert_eq(read_all(&err), K3_EDATA);
    cr_assert(strstr(err.text, "merge") && err.offset == (int64_t)size, "%s", err.text);
    free(two);
    free(data);
}
