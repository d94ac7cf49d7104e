/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers that grow. */
#include "text.h"

#include <stdlib.h>

/* New capacity for n + more elements of `size` bytes, or 0 on overflow. */
static size_t grown(size_t n, size_t more, size_t cap, size_t size)
{
    size_t want;
    if (__builtin_add_overflow(n, more, &want) || want > SIZE_MAX / 2 / size)
        return 0;
    return want > cap + cap / 2 ? want : cap + cap / 2;
}

static int reserve(void **data, size_t n, size_t more, size_t *cap, size_t size, k3_err *err)
{
    if (n + more >= n && n + more <= *cap)
        return 0;
    size_t want = grown(n, more, *cap, size);
    void *p = want ? realloc(*data, want * size) : NULL;
    if (!p)
        return k3_fail(err, K3_ESYS, "out of memory for %zu more elements", more);
    *data = p;
    *cap = want;
    return 0;
}

int k3_ids_reserve(k3_ids *ids, size_t more, k3_err *err)
{
    return reserve((void **)&ids->id, ids->n, more, &ids->cap, sizeof *ids->id, err);
}

int k3_bytes_reserve(k3_bytes *b, size_t more, k3_err *err)
{
    return reserve((void **)&b->data, b->n, more, &b->cap, 1, err);
}

int k3_bytes_add(k3_bytes *b, const void *data, size_t size, k3_err *err)
{
    int status = k3_bytes_reserve(b, size, err);
    if (status || !size)
        return status;
    memcpy(b->data + b->n, data, size);
    b->n += size;
    return 0;
}

void k3_ids_free(k3_ids *ids)
{
    free(ids->id);
    *ids = (k3_ids){0};
}

void k3_bytes_free(k3_bytes *b)
{
    free(b->data);
    *b = (k3_bytes){0};
}
