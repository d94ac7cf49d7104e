/* SPDX-License-Identifier: Apache-2.0 */
/* An index against another one that was just made from the shards' headers. */
#include "store.h"

#include <inttypes.h>
#include <string.h>

/* The first entry whose name, dtype, shape or place differs. */
static int differing_entry(const k3_index *ix, const k3_index *now, const char *name, k3_err *err)
{
    k3_entry a, b;
    for (uint64_t i = 0, n = k3_index_count(ix); i < n; i++) {
        k3_index_entry(ix, i, &a);
        k3_index_entry(now, i, &b);
        bool shape = a.rank == b.rank && !memcmp(a.shape, b.shape, a.rank * sizeof *a.shape);
        if (strcmp(a.name, b.name) || strcmp(a.dtype, b.dtype) || !shape)
            return k3_fail_at(err, K3_EDATA, name, b.name, -1, "the index has another name, dtype or shape for it than %s; run k3-index",
                              k3_index_shard_name(now, b.at.shard));
        if (a.at.shard != b.at.shard || a.at.offset != b.at.offset || a.at.bytes != b.at.bytes)
            return k3_fail_at(err, K3_EDATA, name, b.name, -1,
                              "the index has it at byte %" PRIu64 " of %s, the header of %s at byte %" PRIu64 "; run k3-index",
                              a.at.offset, k3_index_shard_name(ix, a.at.shard), k3_index_shard_name(now, b.at.shard), b.at.offset);
    }
    return 0;
}

int k3_index_compare(const k3_index *ix, const k3_index *now, const char *name, k3_err *err)
{
    bool same = ix->nshards == now->nshards && ix->head->entries == now->head->entries && ix->image_bytes == now->image_bytes;
    for (uint32_t s = 0; s < ix->nshards && same; s++) {
        const struct image_shard *a = &ix->shards[s], *b = &now->shards[s];
        same = !strcmp(a->name, b->name) && a->size == b->size && a->header == b->header &&
               k3_fingerprint_equal(a->digest, b->digest);
    }
    if (!same)
        return k3_fail_at(err, K3_EDATA, name, NULL, -1, "made from other shards than those in %s; run k3-index", ix->dir);
    for (int s = S_TENSORS; s < SECTIONS; s++) {
        const struct section *a = &ix->head->section[s], *b = &now->head->section[s];
        same = same && a->offset == b->offset && a->bytes == b->bytes &&
               !memcmp(ix->image + a->offset, now->image + b->offset, a->bytes);
    }
    if (same)
        return 0;
    int status = differing_entry(ix, now, name, err);
    return status ? status : k3_fail_at(err, K3_EDATA, name, NULL, -1, "its tables are not those of the shards' headers; run k3-index");
}
