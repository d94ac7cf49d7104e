/* SPDX-License-Identifier: Apache-2.0 */
/* .k3t: what is written comes back. */
#include "trace_files.h"

TestSuite(trace_format, .init = setup, .fini = teardown);

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
