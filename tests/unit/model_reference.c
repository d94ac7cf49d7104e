/* SPDX-License-Identifier: Apache-2.0 */
/* The forward pass against the float64 reference, and against itself cut differently. */
#include "model_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PASS = 256, TILE = 65536 };

static double worst_difference(const float *a, const float *b, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++)
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    return worst;
}

/* What the hooks saw of one pass. */
struct seen {
    const k3_npy *layers, *experts;
    size_t tokens;
    double worst; /* of a layer, relative to its largest value */
    size_t wrong_experts, checked_layers, checked_routes;
};

static int see_layer(void *arg, int layer, const float *stream, size_t tokens)
{
    struct seen *s = arg;
    size_t T = s->layers->shape[1], d = s->layers->shape[2];
    const float *want = (const float *)s->layers->data + (size_t)layer * T * d;
    double largest = 0;
    for (size_t i = 0; i < tokens * d; i++)
        largest = fmax(largest, fabs((double)want[i]));
    s->worst = fmax(s->worst, worst_difference(stream, want, tokens * d) / largest);
    s->checked_layers++;
    return 0;
}

static int see_router(void *arg, int layer, const uint16_t *experts, const float *weights, size_t tokens)
{
    struct seen *s = arg;
    size_t T = s->experts->shape[1], K = s->experts->shape[2];
    const int32_t *want = (const int32_t *)s->experts->data + (size_t)layer * T * K;
    (void)weights;
    for (size_t i = 0; i < tokens * K; i++)
        s->wrong_experts += experts[i] != want[i];
    s->checked_routes++;
    return 0;
}

static void check_case(struct fixture *f, json_t *one, double tolerance)
{
    const char *name = json_string_value(json_object_get(one, "name"));
    size_t V = f->c->vocab;
    struct ids ids;
    struct seen seen = {0};
    k3_npy want, layers, experts;
    case_ids(one, &ids);
    size_t n = ids.n - 1; /* the last generated id is not fed */
    float *logits = malloc(n * V * sizeof *logits);
    expected_array(f, one, "logits", &want);
    expected_array(f, one, "layers", &layers);
    expected_array(f, one, "experts", &experts);
    seen.layers = &layers;
    seen.experts = &experts;
    k3_model_hooks(f->model, layers.data ? &(k3_hooks){.arg = &seen, .layer = see_layer, .router = see_router} : &(k3_hooks){0});
    feed_all(f, ids.id, n, PASS, logits);
    json_t *best = json_object_get(one, "argmax");
    double nll = 0;
    for (size_t t = 0; t < n; t++) {
        const float *row = logits + t * V;
        size_t got = argmax(row, V);
        cr_expect((json_int_t)got == json_integer_value(json_array_get(best, t)), "%s: argmax at %zu is %zu", name, t, got);
        double sum = 0;
        for (size_t i = 0; i < V; i++)
            sum += exp((double)row[i] - (double)row[got]);
        nll += log(sum) + (double)row[got] - (double)row[ids.id[t + 1]];
    }
    cr_expect_float_eq(nll / (double)n, json_real_value(json_object_get(one, "mean_nll")), 5e-5, "%s: mean nll %.6f", name,
                       nll / (double)n);
    if (want.data) {
        double worst = worst_difference(logits, want.data, n * V);
        cr_expect(worst <= tolerance, "%s: logits differ by %.3g", name, worst);
    }
    if (layers.data) {
        cr_expect(seen.worst <= 5e-5, "%s: a layer differs by %.3g of its largest value", name, seen.worst);
        cr_expect(seen.wrong_experts == 0, "%s: %zu routed experts differ", name, seen.wrong_experts);
        cr_expect(seen.checked_layers == f->c->layers && seen.checked_routes == f->c->moe_layers);
    }
    k3_npy_free(&want);
    k3_npy_free(&layers);
    k3_npy_free(&experts);
    free(logits);
}

static void check_model(const char *model, double tolerance)
{
    struct fixture f;
    size_t i;
    json_t *one;
    fixture_open(&f, model, NULL, 2, PASS, TILE);
    json_array_foreach (f.cases, i, one)
        check_case(&f, one, tolerance);
    fixture_close(&f);
}

Test(model_reference, trained)
{
    check_model("tiny", 4e-5);
}

Test(model_reference, odd)
{
    check_model("odd", 2e-4);
}

/* Greedy, one token a pass after the prompt: catches state that is not carried. */
static void check_greedy(const char *model)
{
    struct fixture f;
    size_t i;
    json_t *one;
    k3_err err = {0};
    fixture_open(&f, model, NULL, 1, PASS, TILE);
    float *row = malloc(f.c->vocab * sizeof *row);
    json_array_foreach (f.cases, i, one) {
        struct ids ids;
        case_ids(one, &ids);
        k3_state_reset(f.state);
        k3_span span = {f.state, ids.id, ids.prompt, 1, false};
        for (size_t t = ids.prompt; t < ids.n; t++) {
            cr_assert(!k3_forward(f.model, f.source, &span, 1, f.c->layers, true, row, &err), "%s", err.text);
            size_t got = argmax(row, f.c->vocab);
            cr_assert(got == ids.id[t], "%s: id %zu is %zu, not %u", json_string_value(json_object_get(one, "name")),
                      t - ids.prompt, got, ids.id[t]);
            span = (k3_span){f.state, &ids.id[t], 1, 1, false};
        }
    }
    free(row);
    fixture_close(&f);
}

Test(model_reference, greedy_trained)
{
    check_greedy("tiny");
}

Test(model_reference, greedy_odd)
{
    check_greedy("odd");
}

/* The same bits whatever the cut of the prompt, the threads and the instruction set. */
static void check_bits(const char *model)
{
    static const size_t steps[] = {PASS, 1, 2, 7};
    static const int threads[] = {1, 2, 3, 5};
    struct fixture f;
    struct ids ids;
    fixture_open(&f, model, "scalar", 1, PASS, 4096); /* the rows of most matrices in many tiles */
    case_ids(json_array_get(f.cases, json_array_size(f.cases) - 1), &ids);
    size_t n = ids.n - 1 < 24 ? ids.n - 1 : 24, bytes = n * f.c->vocab * sizeof(float);
    float *want = malloc(bytes), *got = malloc(bytes);
    feed_all(&f, ids.id, n, PASS, want);
    fixture_close(&f);
    for (int i = 0; k3_kernels_available(i); i++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            fixture_open(&f, model, k3_kernels_available(i)->name, threads[t], PASS, TILE);
            for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
                if (i == 0 && t + s != 3)
                    continue; /* the plain kernels are slow: one pair of each is enough */
                feed_all(&f, ids.id, n, steps[s], got);
                cr_expect(!memcmp(want, got, bytes), "%s: %s, %d threads, passes of %zu: other bits", model,
                          k3_kernels_available(i)->name, threads[t], steps[s]);
            }
            fixture_close(&f);
        }
    free(want);
    free(got);
}

Test(model_bits, trained)
{
    check_bits("tiny");
}

Test(model_bits, odd)
{
    check_bits("odd");
}

/* Several sequences in one pass, of different lengths, give each its own bits. */
Test(model_bits, batch_company)
{
    enum { N = 5 };
    struct fixture f;
    k3_err err = {0};
    fixture_open(&f, "tiny", NULL, 2, PASS, TILE);
    size_t V = f.c->vocab, rows = 0, len[N];
    struct ids ids[N];
    k3_state *st[N];
    k3_span span[N];
    for (size_t i = 0; i < N; i++) {
        case_ids(json_array_get(f.cases, i), &ids[i]);
        len[i] = 3 + 4 * i < ids[i].n ? 3 + 4 * i : ids[i].n;
        cr_assert(!k3_state_new(&st[i], f.c, f.c->layers, 64, &err));
        span[i] = (k3_span){st[i], ids[i].id, len[i], 1 + i % 2, false};
        rows += span[i].logits;
    }
    float *all = malloc(rows * V * sizeof *all), *single = malloc(32 * V * sizeof *single);
    cr_assert(!k3_forward(f.model, f.source, span, N, f.c->layers, true, all, &err), "%s", err.text);
    size_t row = 0;
    for (size_t i = 0; i < N; i++) {
        feed_all(&f, ids[i].id, len[i], PASS, single);
        size_t w = span[i].logits;
        cr_expect(!memcmp(all + row * V, single + (len[i] - w) * V, w * V * sizeof *all), "sequence %zu differs", i);
        row += w;
        k3_state_free(st[i]);
    }
    free(all);
    free(single);
    fixture_close(&f);
}

Test(model_errors, full_state_and_foreign_id)
{
    struct fixture f;
    k3_err err = {0};
    k3_state *small;
    fixture_open(&f, "odd", NULL, 1, PASS, TILE);
    uint32_t ids[] = {1, 2, 3, 4}, bad[] = {(uint32_t)f.c->vocab};
    float *row = malloc(f.c->vocab * sizeof *row);
    cr_assert(!k3_state_new(&small, f.c, f.c->layers, 3, &err));
    cr_expect_eq(k3_forward(f.model, f.source, &(k3_span){small, ids, 4, 1, false}, 1, f.c->layers, true, row, &err), K3_EDATA);
    cr_expect_eq(k3_state_position(small), 0);
    cr_expect_eq(k3_forward(f.model, f.source, &(k3_span){small, bad, 1, 1, false}, 1, f.c->layers, true, row, &err), K3_EDATA);
    cr_expect(strstr(err.text, "333"), "%s", err.text);
    k3_state_free(small);
    free(row);
    fixture_close(&f);
}

/* Tentative tokens of which only some are kept leave no trace: then and after a
 * second draft the bits are those of a run that never drafted. Catches a state
 * written too early, a history or position not taken back. */
Test(model_bits, drafts_taken_back)
{
    enum { PROMPT = 9, DRAFT = 5, AFTER = 6 };
    struct fixture f;
    struct ids ids;
    k3_err err = {0};
    fixture_open(&f, "odd", NULL, 2, PASS, TILE);
    size_t V = f.c->vocab, n = PROMPT + 2 * DRAFT + AFTER;
    case_ids(json_array_get(f.cases, json_array_size(f.cases) - 1), &ids);
    for (size_t i = ids.n; i < n; i++)
        ids.id[i] = (uint32_t)(i * 37 % V);
    float *want = malloc(n * V * sizeof *want), *got = malloc(n * V * sizeof *got);
    feed_all(&f, ids.id, n, PASS, want);
    cr_assert(!k3_state_allow_drafts(f.state, DRAFT, &err), "%s", err.text);
    for (size_t keep = 1; keep <= DRAFT; keep++) {
        feed_all(&f, ids.id, PROMPT, PASS, got);
        size_t at = PROMPT;
        for (int round = 0; round < 2; round++) {
            uint32_t draft[DRAFT];
            for (size_t i = 0; i < DRAFT; i++) /* right up to `keep`, wrong after */
                draft[i] = i < keep ? ids.id[at + i] : (ids.id[at + i] + 1) % (uint32_t)V;
            k3_span span = {f.state, draft, DRAFT, DRAFT, true};
            cr_assert(!k3_forward(f.model, f.source, &span, 1, f.c->layers, true, got + at * V, &err), "%s", err.text);
            k3_state_accept(f.state, keep);
            at += keep;
            cr_assert_eq(k3_state_position(f.state), at);
        }
        for (size_t end = at + AFTER; at < end; at++) {
            k3_span span = {f.state, &ids.id[at], 1, 1, false};
            cr_assert(!k3_forward(f.model, f.source, &span, 1, f.c->layers, true, got + at * V, &err), "%s", err.text);
        }
        cr_expect(!memcmp(want, got, at * V * sizeof *got), "other bits with %zu of %d kept", keep, DRAFT);
    }
    free(want);
    free(got);
    fixture_close(&f);
}
