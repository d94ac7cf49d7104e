/* .k3t: what is written comes back, and nothing damaged is believed. */
#include "../../lib/trace/format.h"
#include "temp_folder.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

#include <xxhash.h>
#include <zstd.h>

static uint64_t rng;

static uint32_t below(uint32_t n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((rng >> 32) * n >> 32);
}

static char dir[FOLDER_MAX], file[FOLDER_MAX + 16];

static void setup(void)
{
    rng = 7;
    temp_folder(dir);
    snprintf(file, sizeof file, "%s/t.k3t", dir);
}

static void teardown(void)
{
    unlink(file);
    cr_assert_eq(rmdir(dir), 0, "a temporary was left behind");
}

TestSuite(trace_format, .init = setup, .fini = teardown);

static k3_trace_header header(bool weights, bool residency)
{
    k3_trace_header h = {.shape = {.layers = 5, .first = 1, .experts = 37, .topk = 3},
                         .expert_bytes = 1000,
                         .fingerprint = {0x1234, 0x5678},
                         .weights = weights,
                         .residency = residency,
                         .policy = K3_POLICY_LAYERS,
                         .slots = 9,
                         .source = "unit test"};
    return h;
}

/* A step's choices are a function of a seed, so that a test needs no copy of the trace. */
struct shape_of_step {
    int rows, k;
};

static struct shape_of_step step_shape(int s)
{
    return (struct shape_of_step){s % 7 == 0 ? 1 + s % 5 : 1, s % 5 == 4 ? 2 : 3};
}

static void fill(int step, int layer, int n, int experts, uint16_t *e, float *w, uint8_t *res)
{
    rng = (uint64_t)(step * 131 + layer) / 3 + 5; /* neighbours share numbers, as real routing does */
    for (int i = 0; i < n; i++) {
        e[i] = (int32_t)below((uint32_t)experts);
        w[i] = (float)below(1000) / 977;
        res[i] = (uint8_t)below(2);
    }
}

static void write_trace(const char *path, const k3_trace_header *h, int steps, bool append)
{
    k3_err err = {0};
    k3_trace_writer *w;
    cr_assert_eq(k3_trace_create(&w, path, h, append, &err), 0, "%s", err.text);
    for (int s = 0; s < steps; s++) {
        struct shape_of_step shape = step_shape(s);
        k3_trace_row row[8];
        for (int r = 0; r < shape.rows; r++)
            row[r] = (k3_trace_row){.position = (uint64_t)s * 1000 + (uint64_t)r,
                                    .sequence = (uint32_t)(s % 3),
                                    .phase = (uint32_t)(s % K3_PHASE_COUNT)};
        cr_assert_eq(k3_trace_step_rows(w, row, shape.rows, &err), 0);
        for (int l = h->shape.first; l < h->shape.layers; l++) {
            uint16_t e[32];
            float weight[32];
            uint8_t res[32];
            int n = shape.rows * shape.k;
            fill(s, l, n, h->shape.experts, e, weight, res);
            cr_assert_eq(k3_trace_layer(w, l, e, n, h->weights ? weight : NULL, h->residency ? res : NULL, &err), 0,
                         "%s", err.text);
        }
    }
    cr_assert_eq(k3_trace_close(&w, &err), 0, "%s", err.text);
}

/* Reads on from step `s`; returns the steps seen. */
static int check_trace(k3_trace_reader *r, const k3_trace_header *h, int s, uint32_t sequence_base)
{
    k3_err err = {0};
    const k3_trace_batch *b;
    int seen = 0, layer = h->shape.layers - 1, first = s;
    while (!k3_trace_next(r, &b, &err) && b) {
        uint16_t e[32];
        float weight[32];
        uint8_t res[32];
        if (b->new_step) {
            cr_assert_eq(layer, h->shape.layers - 1, "a step was cut short");
            s = first + seen++;
            layer = h->shape.first - 1;
        }
        struct shape_of_step shape = step_shape(s);
        cr_assert_eq(b->layer, ++layer);
        cr_assert(b->rows == shape.rows && b->k == shape.k, "step %d has %d rows of %d", s, b->rows, b->k);
        fill(s, layer, b->rows * b->k, h->shape.experts, e, weight, res);
        cr_assert_arr_eq(b->experts, e, (size_t)(b->rows * b->k) * sizeof *e);
        cr_assert_eq(b->weights != NULL, h->weights);
        cr_assert(!b->weights || !memcmp(b->weights, weight, (size_t)(b->rows * b->k) * sizeof *weight));
        cr_assert(!b->residency || !memcmp(b->residency, res, (size_t)(b->rows * b->k)));
        for (int i = 0; i < b->rows; i++) {
            cr_assert_eq(b->row[i].position, (uint64_t)s * 1000 + (uint64_t)i);
            cr_assert_eq(b->row[i].sequence, (uint32_t)(s % 3) + sequence_base);
            cr_assert_eq(b->row[i].phase, (uint32_t)(s % K3_PHASE_COUNT));
        }
    }
    cr_assert_eq(err.status, 0, "%s", err.text);
    return seen;
}

static k3_trace_reader *open_trace(const char *path)
{
    k3_err err = {0};
    k3_trace_reader *r;
    cr_assert_eq(k3_trace_open(&r, path, &err), 0, "%s", err.text);
    return r;
}

Test(trace_format, comes_back)
{
    /* 9,000 steps of 4 layers fill a frame and part of a second */
    static const int steps[] = {0, 1, 2, 300, 9000};
    for (int kind = 0; kind < 4; kind++)
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            k3_trace_header h = header(kind & 1, kind & 2);
            write_trace(file, &h, steps[i], false);
            k3_trace_reader *r = open_trace(file);
            const k3_trace_header *got = k3_trace_info(r);
            cr_assert_arr_eq(&got->shape, &h.shape, sizeof h.shape);
            cr_assert(got->expert_bytes == h.expert_bytes && k3_fingerprint_equal(got->fingerprint, h.fingerprint));
            cr_assert(got->policy == h.policy && got->slots == h.slots && !strcmp(got->source, h.source));
            cr_assert_eq(check_trace(r, &h, 0, 0), steps[i]);
            cr_assert_eq((int)k3_trace_count(r).steps, steps[i]);
            cr_assert(steps[i] < 9000 || k3_trace_count(r).frames == 2);
            k3_trace_free(r);
        }
}

Test(trace_format, seeks_by_frame)
{
    k3_trace_header h = header(false, true);
    write_trace(file, &h, 9000, false);
    for (int want = 0; want < 9000; want += 499) {
        k3_err err = {0};
        k3_trace_reader *r = open_trace(file);
        const k3_trace_batch *b;
        cr_assert_eq(k3_trace_seek(r, (uint64_t)want, &err), 0, "%s", err.text);
        do
            cr_assert_eq(k3_trace_next(r, &b, &err), 0, "%s", err.text);
        while (b->step < (uint64_t)want);
        cr_assert(b->new_step && b->step == (uint64_t)want && b->row[0].position == (uint64_t)want * 1000);
        while (!k3_trace_next(r, &b, &err) && b)
            ;
        cr_assert_eq(err.status, 0, "%s", err.text);
        cr_assert_eq(k3_trace_count(r).steps, 9000);
        k3_trace_free(r);
    }
}

Test(trace_format, a_step_longer_than_a_frame)
{
    /* 3,000 rows of 16 in 6 layers: every other frame continues a step */
    enum { ROWS = 3000, K = 16 };
    k3_trace_header h = header(false, false);
    h.shape = (k3_shape){.layers = 6, .first = 0, .experts = 896, .topk = K};
    k3_err err = {0};
    k3_trace_writer *w;
    k3_trace_row *row = calloc(ROWS, sizeof *row);
    uint16_t *e = malloc(ROWS * K * sizeof *e);
    for (int i = 0; i < ROWS; i++)
        row[i].position = (uint64_t)i;
    cr_assert_eq(k3_trace_create(&w, file, &h, false, &err), 0);
    for (int s = 0; s < 3; s++) {
        cr_assert_eq(k3_trace_step_rows(w, row, ROWS, &err), 0);
        for (int l = 0; l < 6; l++) {
            for (int i = 0; i < ROWS * K; i++)
                e[i] = (i * 7 + l * 13 + s) % 896;
            cr_assert_eq(k3_trace_layer(w, l, e, ROWS * K, NULL, NULL, &err), 0);
        }
    }
    cr_assert_eq(k3_trace_close(&w, &err), 0);
    for (int from = 0; from < 3; from++) {
        k3_trace_reader *r = open_trace(file);
        const k3_trace_batch *b;
        int begun = 0;
        cr_assert_eq(k3_trace_seek(r, (uint64_t)from, &err), 0);
        while (!k3_trace_next(r, &b, &err) && b) {
            cr_assert(b->rows == ROWS && b->row[ROWS - 1].position == ROWS - 1);
            cr_assert_eq(b->experts[5], (35 + b->layer * 13 + (int)b->step) % 896);
            begun += b->new_step && b->step >= (uint64_t)from;
        }
        cr_assert_eq(err.status, 0, "%s", err.text);
        cr_assert_eq(begun, 3 - from);
        cr_assert_eq(k3_trace_count(r).steps, 3);
        k3_trace_free(r);
    }
    free(row);
    free(e);
}

static char *slurp(size_t *size)
{
    char *data;
    k3_err err = {0};
    cr_assert_eq(k3_read_file(file, 1 << 24, &data, size, &err), 0, "%s", err.text);
    return data;
}

static void spill(const void *data, size_t size)
{
    FILE *f = fopen(file, "wb");
    cr_assert(f && fwrite(data, 1, size, f) == size && !fclose(f));
}

/* Status and message of reading the whole file. */
static int read_all(k3_err *err)
{
    k3_trace_reader *r;
    const k3_trace_batch *b;
    *err = (k3_err){0};
    int status = k3_trace_open(&r, file, err);
    while (!status && !(status = k3_trace_next(r, &b, err)) && b)
        ;
    k3_trace_free(r);
    return status;
}

Test(trace_format, a_cut_at_any_byte_is_an_error)
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

Test(trace_format, a_flipped_bit_anywhere_is_an_error)
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

Test(trace_format, frames_cannot_be_moved)
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
    k3_header_encode(h, buf, &seal);
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

Test(trace_format, nonsense_under_good_checksums_is_refused)
{
    static const uint8_t good[] = {0, 1, 0, 0, 0, 1, 0};             /* one row; layer 1, k = topk */
    static const uint8_t choices[] = {255, 255, 255, 0x41, 0x30, 0}; /* three 6-bit numbers: 1, 1, 3 */
    static const struct {
        const char *what;
        uint8_t s[12];
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
Test(trace_format, payloads_that_are_not_one_zstd_frame)
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

Test(trace_format, foreign_files_are_named)
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

Test(trace_format, joined_files_are_refused)
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

Test(trace_format, append_carries_over_and_counts_on)
{
    k3_trace_header h = header(true, true);
    write_trace(file, &h, 100, true); /* to nothing: a new trace */
    write_trace(file, &h, 50, true);
    k3_trace_reader *r = open_trace(file);
    const k3_trace_batch *b;
    k3_err err = {0};
    int steps = 0;
    uint32_t most = 0;
    while (!k3_trace_next(r, &b, &err) && b) {
        steps += b->new_step;
        most = b->row[0].sequence > most ? b->row[0].sequence : most;
        cr_assert(b->step < 100 || b->row[0].sequence >= 3, "sequences of two runs mixed");
    }
    cr_assert_eq(err.status, 0, "%s", err.text);
    cr_assert(steps == 150 && most == 5);
    k3_trace_free(r);
}

Test(trace_format, append_refuses_another_trace_and_leaves_it_alone)
{
    k3_trace_header h = header(true, true), other[5] = {h, h, h, h, h};
    static const char *const what[] = {"model", "shape", "expert size", "kind of record", "cache policy"};
    other[0].fingerprint.hi++;
    other[1].shape.experts++;
    other[2].expert_bytes++;
    other[3].weights = false;
    other[4].slots++;
    write_trace(file, &h, 3, false);
    size_t size, now;
    char *data = slurp(&size), *after;
    for (int i = 0; i < 5; i++) {
        k3_err err = {0};
        k3_trace_writer *w;
        cr_assert_eq(k3_trace_create(&w, file, &other[i], true, &err), K3_EDATA);
        cr_assert(!w && strstr(err.text, what[i]), "%s", err.text);
    }
    /* an abandoned append does not touch the old file either */
    k3_trace_writer *w;
    cr_assert_eq(k3_trace_create(&w, file, &h, true, NULL), 0);
    k3_trace_abort(&w);
    after = slurp(&now);
    cr_assert(now == size && !memcmp(after, data, size));
    free(data);
    free(after);
}

Test(trace_format, salvage_keeps_whole_frames)
{
    k3_trace_header h = header(false, true);
    write_trace(file, &h, 9000, false);
    size_t size;
    char *data = slurp(&size);
    uint32_t one = FRAME_BYTES + get32((uint8_t *)data + HEADER_BYTES + 4);
    spill(data, HEADER_BYTES + one + 1000);
    k3_trace_reader *r = open_trace(file);
    const k3_trace_batch *b;
    k3_err err = {0};
    k3_trace_salvage(r);
    uint64_t choices = 0;
    while (!k3_trace_next(r, &b, &err) && b)
        choices += (uint64_t)(b->rows * b->k);
    cr_assert_eq(err.status, 0);
    cr_assert(choices >= FRAME_CHOICES && choices < FRAME_CHOICES + 16);
    cr_assert_eq(k3_trace_cut_off(r), HEADER_BYTES + one);
    k3_trace_free(r);
    free(data);
}

Test(trace_format, the_writer_refuses_what_no_router_does)
{
    k3_trace_header h = header(false, false);
    k3_trace_writer *w;
    const uint16_t e[4] = {0, 36, 5, 1}, high[1] = {37};
    const float weight[3] = {0};
    cr_assert_eq(k3_trace_create(&w, file, &h, false, NULL), 0);
    cr_assert_eq(k3_trace_layer(w, 1, e, 3, NULL, NULL, NULL), K3_EUSAGE, "a layer before any step");
    cr_assert_eq(k3_trace_step(w, 0, 0, K3_PHASE_COUNT, NULL), K3_EUSAGE);
    cr_assert_eq(k3_trace_step(w, 0, 1ull << 48, 0, NULL), K3_EUSAGE);
    cr_assert_eq(k3_trace_step(w, 0, 0, 0, NULL), 0);
    cr_assert_eq(k3_trace_layer(w, 0, e, 3, NULL, NULL, NULL), K3_EUSAGE, "a layer without experts");
    cr_assert_eq(k3_trace_layer(w, 5, e, 3, NULL, NULL, NULL), K3_EUSAGE);
    cr_assert_eq(k3_trace_layer(w, 1, high, 1, NULL, NULL, NULL), K3_EUSAGE);
    cr_assert_eq(k3_trace_layer(w, 1, e, 0, NULL, NULL, NULL), K3_EUSAGE);
    cr_assert_eq(k3_trace_layer(w, 1, e, 3, weight, NULL, NULL), K3_EUSAGE);
    k3_trace_row rows[3] = {{0}};
    cr_assert_eq(k3_trace_step_rows(w, rows, 3, NULL), 0);
    cr_assert_eq(k3_trace_layer(w, 1, e, 4, NULL, NULL, NULL), K3_EUSAGE, "4 choices for 3 rows");
    cr_assert_eq(k3_trace_layer(w, 1, e, 3, NULL, NULL, NULL), 0, "a refused call must not spoil the trace");
    cr_assert_eq(k3_trace_close(&w, NULL), 0);
    k3_err err;
    cr_assert_eq(read_all(&err), 0, "%s", err.text);
}

/* A router with K3's shape: 40 % of a row return, the other experts are new. */
static uint64_t routed_bytes(int percent_kept)
{
    enum { TOKENS = 60, K = 16 };
    k3_trace_header h = header(false, true);
    h.shape = (k3_shape){.layers = 93, .first = 1, .experts = 896, .topk = K};
    static uint16_t row[93][K];
    uint8_t res[K];
    k3_trace_writer *w;
    memset(row, 0, sizeof row);
    rng = 99;
    cr_assert_eq(k3_trace_create(&w, file, &h, false, NULL), 0);
    for (int t = 0; t < TOKENS; t++) {
        cr_assert_eq(k3_trace_step(w, 0, (uint64_t)t, K3_PHASE_DECODE, NULL), 0);
        for (int l = 1; l < 93; l++) {
            for (int i = 0; i < K; i++) {
                res[i] = t && (int)below(100) < percent_kept;
                if (!res[i])
                    row[l][i] = (uint16_t)below(896);
            }
            for (int i = 0; i < K; i++) { /* ranks change a little */
                int a = (int)below(K), b = a ? a - 1 : 1;
                uint16_t x = row[l][a];
                row[l][a] = row[l][b];
                row[l][b] = x;
            }
            cr_assert_eq(k3_trace_layer(w, l, row[l], K, NULL, res, NULL), 0);
        }
    }
    cr_assert_eq(k3_trace_close(&w, NULL), 0);
    size_t size;
    free(slurp(&size));
    return size * 1000 / (TOKENS * 92 * K);
}

Test(trace_format, a_choice_takes_at_most_1300_millibytes)
{
    /* with residency recorded; without any locality the floor is 1.226 bytes */
    cr_assert_leq(routed_bytes(40), 1300, "%llu", (unsigned long long)routed_bytes(40));
    cr_assert_leq(routed_bytes(0), 1300, "%llu", (unsigned long long)routed_bytes(0));
}

Test(trace_format, nothing_is_left_when_the_disk_is_full)
{
    k3_trace_header h = header(false, false);
    k3_err err = {0};
    k3_trace_writer *w;
    const uint16_t e[3] = {1, 2, 3};
    int status = k3_trace_create(&w, "/dev/full", &h, false, &err);
    if (!status) {
        status = k3_trace_step(w, 0, 0, 0, &err);
        if (!status)
            status = k3_trace_layer(w, 1, e, 3, NULL, NULL, &err);
        int closed = k3_trace_close(&w, &err);
        status = status ? status : closed;
    }
    cr_assert_eq(status, K3_ESYS);
    cr_assert(strstr(err.text, "/dev/full"), "%s", err.text);
}
