/* SPDX-License-Identifier: Apache-2.0 */
/* A state that gets more room goes on as one that had it from the start, in memory and in a scratch file. */
#include "model_fixture.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static void run(struct fixture *f, k3_state *s, const uint32_t *ids, size_t n, float *logits)
{
    k3_err err = {0};
    k3_span span = {s, ids, n, n};
    cr_assert(!k3_forward(f->model, f->source, &span, 1, f->c->layers, false, logits, &err), "%s", err.text);
}

static void check(bool spilled, bool drafts)
{
    struct fixture f;
    struct ids ids;
    k3_err err = {0};
    k3_state *s;
    enum { N = 12 };
    fixture_open(&f, "odd", NULL, 2, 64, 65536);
    case_ids(json_array_get(f.cases, 0), &ids);
    size_t V = f.c->vocab;
    float *whole = malloc(N * V * sizeof *whole), *grown = malloc(N * V * sizeof *grown);
    feed_all(&f, ids.id, N, N, whole);
    cr_assert(!(spilled ? k3_state_new_spilled(&s, f.c, f.c->layers, 3, "/var/tmp", &err) : k3_state_new(&s, f.c, f.c->layers, 3, &err)));
    cr_assert(!drafts || !k3_state_allow_drafts(s, 3, &err));
    if (drafts) { /* two of the three stay, and are not yet in the recurrence when the state grows */
        k3_span span = {s, ids.id, 3, 3, true};
        cr_assert(!k3_forward(f.model, f.source, &span, 1, f.c->layers, false, grown, &err), "%s", err.text);
        k3_state_accept(s, 2);
    } else {
        run(&f, s, ids.id, 2, grown);
    }
    cr_assert(!k3_state_grow(s, 2, &err) && !k3_state_grow(s, 5, &err), "%s", err.text);
    run(&f, s, ids.id + 2, 3, grown + 2 * V);
    cr_expect(k3_forward(f.model, f.source, &(k3_span){s, ids.id + 5, 1, 1}, 1, f.c->layers, false, grown, &err), "5 positions hold 5");
    cr_assert(!k3_state_grow(s, N, &err), "%s", err.text);
    run(&f, s, ids.id + 5, N - 5, grown + 5 * V);
    cr_expect(!memcmp(grown + 2 * V, whole + 2 * V, (N - 2) * V * sizeof *grown));
    k3_state_free(s);
    free(whole);
    free(grown);
    fixture_close(&f);
}

Test(state_grow, in_memory)
{
    check(false, false);
}

Test(state_grow, in_a_scratch_file)
{
    check(true, false);
}

Test(state_grow, with_drafts_not_yet_settled)
{
    check(false, true);
}
