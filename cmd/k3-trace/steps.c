/* SPDX-License-Identifier: Apache-2.0 */
/* Steps from single choices. The origin engine ran the whole text again for each
 * new token; such steps repeat the one before and add one position, which is
 * how they are recognised and how the true decode steps are cut out. */
#include "steps.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int grow_by_one(void *array, uint32_t *room, uint32_t used, size_t item, k3_err *err)
{
    void *old, *p;
    if (used < *room)
        return 0;
    uint32_t want = *room ? 2 * *room : 256;
    memcpy(&old, array, sizeof old);
    if (!(p = realloc(old, want * item)))
        return k3_fail(err, K3_ESYS, "out of memory for a step");
    memcpy(array, &p, sizeof p);
    *room = want;
    return 0;
}

int steps_add(struct steps *s, int layer, int expert, uint64_t offset, k3_err *err)
{
    struct step_choices *t = &s->now;
    if (layer < s->shape.first || layer >= s->shape.layers)
        return k3_fail_at(err, K3_EDATA, s->name, NULL, (int64_t)offset,
                          "layer %d is not one of %d to %d; see --shape", layer, s->shape.first, s->shape.layers - 1);
    if (expert < 0 || expert >= s->shape.experts)
        return k3_fail_at(err, K3_EDATA, s->name, NULL, (int64_t)offset,
                          "expert %d is not one of 0 to %d; see --shape", expert, s->shape.experts - 1);
    if (!t->layers || t->layer[t->layers - 1].layer != layer) {
        if (grow_by_one(&t->layer, &t->layer_room, t->layers, sizeof *t->layer, err))
            return K3_ESYS;
        t->layer[t->layers++] = (struct step_layer){.layer = layer, .at = t->choices};
    }
    if (t->layer[t->layers - 1].n >= K3_TRACE_MAX_CHOICES)
        return k3_fail_at(err, K3_EDATA, s->name, NULL, (int64_t)offset,
                          "more than %d choices of layer %d in one step", K3_TRACE_MAX_CHOICES, layer);
    if (grow_by_one(&t->choice, &t->choice_room, t->choices, sizeof *t->choice, err))
        return K3_ESYS;
    t->choice[t->choices++] = (uint16_t)expert;
    t->layer[t->layers - 1].n++;
    return 0;
}

int steps_row(struct steps *s, const k3_trace_row *row, k3_err *err)
{
    struct step_choices *t = &s->now;
    if (grow_by_one(&t->row, &t->row_room, t->rows, sizeof *t->row, err))
        return K3_ESYS;
    t->row[t->rows++] = *row;
    return 0;
}

/* Rows of the step. Every layer must have the top-k choices of each. */
static int count_rows(const struct steps *s, uint32_t *rows, k3_err *err)
{
    const struct step_choices *t = &s->now;
    uint32_t k = (uint32_t)s->shape.topk, n = t->layer[0].n;
    if (!t->rows && n % k)
        return k3_fail(err, K3_EDATA, "%s: step %" PRIu64 ", layer %d: %u choices are no multiple of top-k %u; cut off, or see --shape",
                       s->name, s->count, t->layer[0].layer, n, k);
    *rows = t->rows ? t->rows : n / k;
    if (*rows > K3_TRACE_MAX_ROWS)
        return k3_fail(err, K3_EDATA, "%s: step %" PRIu64 " has %u positions, at most %d are possible", s->name,
                       s->count, *rows, K3_TRACE_MAX_ROWS);
    for (uint32_t i = 0; i < t->layers; i++)
        if (t->layer[i].n != *rows * k)
            return k3_fail(err, K3_EDATA,
                           "%s: step %" PRIu64 ", layer %d: %u choices, expected %u (positions: %u, top-k: %u); cut off, or see --shape",
                           s->name, s->count, t->layer[i].layer, t->layer[i].n, *rows * k, *rows, k);
    return 0;
}

/* Whether the step is the one before and one position more. */
static bool repeats_before(const struct steps *s, uint32_t rows)
{
    const struct step_choices *a = &s->before, *b = &s->now;
    if (!s->count || b->rows || rows != s->last_rows + 1 || a->layers != b->layers)
        return false;
    for (uint32_t i = 0; i < a->layers; i++)
        if (a->layer[i].layer != b->layer[i].layer ||
            memcmp(a->choice + a->layer[i].at, b->choice + b->layer[i].at, a->layer[i].n * sizeof *a->choice))
            return false;
    return true;
}

static int write_rows(struct steps *s, uint32_t rows, bool repeated, k3_err *err)
{
    const struct step_choices *t = &s->now;
    bool last_only = repeated && s->incremental;
    uint32_t n = last_only ? 1 : rows;
    k3_trace_row *row = t->rows ? t->row : calloc(n, sizeof *row);
    if (!row)
        return k3_fail(err, K3_ESYS, "out of memory for a step");
    for (uint32_t i = 0; i < n && !t->rows; i++)
        row[i] = (k3_trace_row){.position = last_only  ? rows - 1
                                            : repeated ? i
                                                       : s->position + i,
                                .sequence = s->sequence,
                                .phase = last_only || (!repeated && rows == 1) ? K3_PHASE_DECODE : K3_PHASE_PREFILL};
    int status = k3_trace_step_rows(s->w, row, (int)n, err);
    for (uint32_t i = 0; i < t->layers && !status; i++) {
        uint32_t each = t->layer[i].n / rows, skip = last_only ? t->layer[i].n - each : 0;
        status = k3_trace_layer(s->w, t->layer[i].layer, t->choice + t->layer[i].at + skip, (int)(each * n), NULL,
                                NULL, err);
    }
    s->rows_in += rows;
    s->rows_out += n;
    if (!t->rows)
        free(row);
    return status;
}

int steps_end(struct steps *s, k3_err *err)
{
    uint32_t rows = 0;
    if (!s->now.layers)
        return 0;
    int status = count_rows(s, &rows, err);
    if (status)
        return status;
    bool repeated = repeats_before(s, rows);
    if (!repeated && s->repeats && s->last_rows != rows) {
        /* after re-prefilled steps, one that is none of them starts another text */
        s->sequence++;
        s->position = 0;
    }
    status = write_rows(s, rows, repeated, err);
    s->repeats += repeated;
    if (!s->count)
        s->first_rows = rows;
    s->last_rows = rows;
    s->position = repeated ? rows : s->position + rows;
    s->layers_seen = s->now.layers > s->layers_seen ? s->now.layers : s->layers_seen;
    s->count++;
    struct step_choices old = s->before;
    s->before = s->now;
    s->now = old;
    s->now.layers = s->now.choices = s->now.rows = 0;
    return status;
}

static void step_free(struct step_choices *t)
{
    free(t->layer);
    free(t->choice);
    free(t->row);
}

void steps_free(struct steps *s)
{
    step_free(&s->now);
    step_free(&s->before);
}
