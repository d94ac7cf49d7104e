/* SPDX-License-Identifier: Apache-2.0 */
/* Requests collected from a trace. */
#include "k3_sim.h"

#include <stdlib.h>

int k3_requests_new(k3_requests *q, const k3_shape *shape, bool batched, k3_err *err)
{
    *q = (k3_requests){.batched = batched, .shape = *shape};
    q->seen = calloc((size_t)shape->experts, sizeof *q->seen);
    q->distinct = malloc((size_t)shape->experts * sizeof *q->distinct);
    if (q->seen && q->distinct)
        return 0;
    k3_requests_free(q);
    return k3_fail(err, K3_ESYS, "out of memory for requests");
}

void k3_requests_free(k3_requests *q)
{
    free(q->id);
    free(q->batch);
    free(q->seen);
    free(q->distinct);
    *q = (k3_requests){0};
}

void k3_requests_clear(k3_requests *q)
{
    q->n = q->batches = 0;
}

static int make_room(k3_requests *q, uint64_t n, k3_err *err)
{
    if (q->batches == q->batch_room) {
        uint64_t room = q->batch_room ? 2 * q->batch_room : 4096;
        k3_sim_batch *b = realloc(q->batch, room * sizeof *b);
        if (!b)
            return k3_fail(err, K3_ESYS, "out of memory for %llu batches of a trace", (unsigned long long)room);
        q->batch = b;
        q->batch_room = room;
    }
    if (q->n + n > q->id_room) {
        uint64_t room = q->id_room ? 2 * q->id_room : 65536;
        if (room < q->n + n)
            room = q->n + n;
        uint32_t *id = realloc(q->id, room * sizeof *id);
        if (!id)
            return k3_fail(err, K3_ESYS, "out of memory for %llu requests of a trace", (unsigned long long)room);
        q->id = id;
        q->id_room = room;
    }
    return 0;
}

int k3_requests_add(k3_requests *q, const k3_trace_batch *b, bool counted, k3_err *err)
{
    const uint16_t *e = b->experts;
    size_t n = (size_t)b->rows * (size_t)b->k;
    if (q->batched) {
        n = k3_distinct(q->seen, e, (size_t)b->rows, (size_t)b->k, q->distinct);
        e = q->distinct;
    }
    int status = make_room(q, n, err);
    if (status)
        return status;
    uint32_t base = (uint32_t)((b->layer - q->shape.first) * q->shape.experts), *id = q->id + q->n;
    for (size_t i = 0; i < n; i++)
        id[i] = base + e[i];
    q->batch[q->batches++] = (k3_sim_batch){.n = (uint32_t)n, .layer = (uint16_t)b->layer, .counted = counted};
    q->n += n;
    return 0;
}
