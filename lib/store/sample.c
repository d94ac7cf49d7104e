/* SPDX-License-Identifier: Apache-2.0 */
/* Digests over a sample of every tensor's bytes: two checkpoints whose headers are the same
 * and whose weights are not have other digests. k3-index(5) states which bytes. */
#define _GNU_SOURCE
#include "store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WHOLE = 1 << 20,          /* a tensor up to this size is taken whole, */
    WHOLE_PART = 1 << 16,     /* of an expert's parts those up to this; */
    WINDOW = 4096, WINDOWS = 16, /* of larger ones so many windows, of a part the one in the middle */
    QUICK_PARTS = 6144,       /* about as many parts of experts are in the quick digest */
};

uint64_t k3_sample_stride(const k3_config *c)
{
    return (c->moe_layers * c->experts * K3_PARTS + QUICK_PARTS - 1) / QUICK_PARTS;
}

/* Adds `bytes` at `offset` to the digests. */
static int add_bytes(struct sampler *s, uint64_t offset, uint64_t bytes, bool quick, k3_err *err)
{
    int status = k3_pread_full(s->fd, s->name, s->buf, bytes, offset, err);
    if (status)
        return status;
    XXH3_128bits_update(s->all, s->buf, bytes);
    if (quick)
        XXH3_128bits_update(s->quick, s->buf, bytes);
    return 0;
}

int k3_sampler_open(struct sampler *s, int fd, const char *name, k3_err *err)
{
    *s = (struct sampler){.fd = fd, .name = name, .buf = malloc(WHOLE), .all = XXH3_createState(), .quick = XXH3_createState()};
    if (!s->buf || !s->all || !s->quick) {
        k3_sampler_close(s);
        return k3_fail(err, K3_ESYS, "%s: out of memory", name);
    }
    XXH3_128bits_reset(s->all);
    XXH3_128bits_reset(s->quick);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* no reading ahead of single windows */
    return 0;
}

int k3_sampler_add(struct sampler *s, const struct sampled *t, k3_err *err)
{
    uint64_t n = t->part ? 1 : WINDOWS;
    int status = 0;
    if (t->bytes <= (t->part ? WHOLE_PART : WHOLE))
        return add_bytes(s, t->offset, t->bytes, t->quick, err);
    for (uint64_t i = 0; i < n && !status; i++)
        status = add_bytes(s, t->offset + (t->bytes - WINDOW) / (2 * n) * (2 * i + 1), WINDOW, t->quick, err);
    return status;
}

static k3_fingerprint result(const XXH3_state_t *x)
{
    XXH128_hash_t h = XXH3_128bits_digest(x);
    return (k3_fingerprint){h.low64, h.high64};
}

void k3_sampler_digests(const struct sampler *s, k3_fingerprint *all, k3_fingerprint *quick)
{
    *all = result(s->all);
    *quick = result(s->quick);
}

void k3_sampler_close(struct sampler *s)
{
    XXH3_freeState(s->all);
    XXH3_freeState(s->quick);
    free(s->buf);
    s->all = s->quick = NULL;
    s->buf = NULL;
}

/* ---- from an index ------------------------------------------------------------------ */

struct list {
    struct sampled *at;
    size_t n, room;
};

static bool add(struct list *l, struct sampled t)
{
    if (l->n == l->room) {
        struct sampled *p = realloc(l->at, (l->room = l->room ? 2 * l->room : 256) * sizeof *p);
        if (!p)
            return false;
        l->at = p;
    }
    l->at[l->n++] = t;
    return true;
}

static int by_offset(const void *a, const void *b)
{
    const struct sampled *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The tensors of a shard that are sampled, in order; only the quick ones if `quick`. */
static bool list_shard(const k3_index *ix, uint32_t shard, bool quick, struct list *l)
{
    const k3_config *c = &ix->config;
    uint64_t stride = k3_sample_stride(c);
    k3_extent part[K3_PARTS];
    bool ok = true;
    for (size_t i = 0; i < (c->layers + 1) * K3_TENSORS && ok; i++) {
        const struct image_tensor *t = &ix->tensors[i];
        if (t->place != PLACE_NONE && place_shard(t->place) == shard)
            ok = add(l, (struct sampled){place_offset(t->place), t->bytes, false, true});
    }
    for (uint64_t layer = c->first_moe; layer < c->layers && ok; layer++)
        for (uint64_t e = 0; e < c->experts && ok; e += quick ? stride : 1) {
            k3_index_expert(ix, (int)layer, e, part);
            for (int p = 0; p < K3_PARTS && ok; p++)
                if (part[p].shard == shard)
                    ok = add(l, (struct sampled){part[p].offset, part[p].bytes, true, e % stride == 0});
        }
    if (l->n)
        qsort(l->at, l->n, sizeof *l->at, by_offset);
    return ok;
}

int k3_index_check_sample(const k3_index *ix, uint32_t shard, const char *name, bool quick_only, k3_err *err)
{
    const struct image_shard *was = &ix->shards[shard];
    struct sampler s = {0};
    struct list l = {0};
    k3_fingerprint all, quick;
    int fd = open(ix->paths[shard], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return k3_fail_errno(err, ix->paths[shard], "cannot open");
    int status = k3_sampler_open(&s, fd, ix->paths[shard], err);
    if (status)
        goto done;
    if (!list_shard(ix, shard, quick_only, &l))
        status = k3_fail(err, K3_ESYS, "%s: out of memory", was->name);
    for (size_t i = 0; i < l.n && !status; i++)
        status = k3_sampler_add(&s, &l.at[i], err);
    if (status)
        goto done;
    k3_sampler_digests(&s, &all, &quick);
    if (!k3_fingerprint_equal(quick, was->quick) || (!quick_only && !k3_fingerprint_equal(all, was->sample)))
        status = k3_fail_at(err, K3_EDATA, was->name, NULL, -1,
                            "its weights have changed, with the same size and header; %s is stale, run k3-index", name);
done:
    k3_sampler_close(&s);
    free(l.at);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* a run that reads directly leaves nothing in the page cache */
    close(fd);
    return status;
}
