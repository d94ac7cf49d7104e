/* SPDX-License-Identifier: Apache-2.0 */
/* k3_source.h - what a forward pass asks of storage: the pieces of the reading
 * order one after another, single embedding rows, and routed experts by
 * number. The forward pass does not know whether they come from shards, from
 * a packed trunk or from memory.
 */
#ifndef K3_SOURCE_H
#define K3_SOURCE_H

#include "k3_kernel.h"
#include "k3_spec.h"
#include "k3_store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One routed expert's six parts, valid until it is released. */
typedef struct k3_expert {
    uint32_t number;
    const uint8_t *part[K3_PARTS];
    void *handle; /* the source's own */
} k3_expert;

/* Bytes and counts since the source was opened. */
typedef struct k3_traffic {
    uint64_t trunk_bytes, head_bytes, expert_bytes, embed_bytes; /* read from storage */
    uint64_t requests; /* experts asked for, distinct within a layer's step */
    uint64_t hits;     /* of those, resident before the step */
    uint64_t misses;   /* requests - hits */
    uint64_t passes;   /* passes begun */
} k3_traffic;

typedef struct k3_source k3_source;
struct k3_source {
    const k3_order *order; /* what next() walks through, owned by the source */
    k3_traffic traffic;
    k3_reading reading; /* how products should read what next(), peek() or expert() gave last; speed only */

    /* A pass from the first piece starts. `head`: it goes on through the head;
     * otherwise the head's pieces are skipped. `more`: another pass will
     * follow, so reading may run ahead into it. */
    int (*begin)(k3_source *, bool head, bool more, k3_err *);

    /* The next piece of the order and its weights: piece->rows rows, valid
     * until release(), aligned to an element. One piece is held at a time. */
    int (*next)(k3_source *, const k3_piece **piece, const void **data, k3_err *);
    void (*release)(k3_source *);

    /* Embedding rows of n ids, each below the vocabulary size: rows [n][hidden], bf16. */
    int (*embed)(k3_source *, const uint32_t *ids, size_t n, uint16_t *rows, k3_err *);

    /* Asks for n distinct experts of a layer, in order of value
     * (k3_distinct of k3_cache.h): the last token's picks first, each token's in router
     * order. The reads start at once. expert() hands them out one at a time, each released before the next
     * is taken: in ascending number if `ascending`, else in order of arrival.
     * All n must be taken before the next want(). The array
     * stays the caller's and unchanged until then. K3_EEXPERT if one cannot be read. */
    int (*want)(k3_source *, int layer, const uint16_t *experts, size_t n, bool ascending, k3_err *);
    int (*expert)(k3_source *, k3_expert *out, k3_err *);
    void (*expert_release)(k3_source *, k3_expert *);

    /* Reading ahead of the router; both NULL if the source does not. peek(): row `row` and those after it of a matrix
     * that this pass has still to reach, as next() will give them, or NULL if it does not stay in memory. expect(): what
     * want() is likely to be given for that layer, the likeliest first; their reads may start where nothing else is to
     * be read. A wrong guess costs only its read. Not between want() and the last release of its experts. */
    const void *(*peek)(k3_source *, int layer, int tensor, uint64_t row, const k3_piece **piece);
    void (*expect)(k3_source *, int layer, const uint16_t *experts, size_t n);

    void (*close)(k3_source *);
};

static inline void k3_source_close(k3_source *s)
{
    if (s)
        s->close(s);
}

/* The plain source: reads the shards when asked. Layers [first, last), then the
 * head if `head`, in tiles of at most `tile_bytes`. The index must outlive it. */
int k3_source_plain(k3_source **src, const k3_index *ix, uint64_t first, uint64_t last, bool head, uint64_t tile_bytes,
                    k3_err *err);

#ifdef __cplusplus
}
#endif

#endif
