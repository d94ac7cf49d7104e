/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder: chunks, special names, the pre-split, and a cache of merged pieces. */
#include "text.h"

#include <stdlib.h>

#define FEED_BYTES (1u << 16) /* taken in at once */
#define HOT_BITS 15
#define HOT_BYTES 15
#define HOT_IDS 3
#define AHEAD 64 /* pieces split before the first of them is looked up */

/* A piece of at most HOT_BYTES bytes and its ids. Two share a cache line, the one used last first. */
struct hot {
    uint64_t lo, hi; /* short_key; 0 0 is free */
    uint32_t n, id[HOT_IDS];
};

struct k3_encoder {
    const k3_vocab *v;
    bool special;
    struct hot (*hot)[2]; /* [1 << HOT_BITS], aligned to cache lines, in hot_block */
    void *hot_block;
    k3_merger *merger;
    k3_piece_fn on_piece;
    void *piece_arg;
    k3_bytes text;      /* what is not encoded yet */
    size_t pos;         /* bytes of it already looked at */
    struct chunk_count chunk;
};

int k3_encoder_new(k3_encoder **encoder, const k3_vocab *v, bool special, k3_err *err)
{
    k3_encoder *e = calloc(1, sizeof *e);
    *encoder = NULL;
    if (!e)
        return k3_fail(err, K3_ESYS, "out of memory for the encoder");
    e->v = v;
    e->special = special;
    /* calloc: a short text touches few of its pages */
    e->hot_block = calloc(((size_t)1 << HOT_BITS) + 1, sizeof *e->hot);
    if (!e->hot_block || k3_merger_new(&e->merger, v, err)) {
        k3_encoder_free(e);
        return k3_fail(err, K3_ESYS, "out of memory for the encoder");
    }
    e->hot = (void *)((uintptr_t)e->hot_block + sizeof *e->hot - (uintptr_t)e->hot_block % sizeof *e->hot);
    *encoder = e;
    return 0;
}

void k3_encoder_free(k3_encoder *e)
{
    if (!e)
        return;
    free(e->hot_block);
    k3_merger_free(e->merger);
    k3_bytes_free(&e->text);
    free(e);
}

void k3_encoder_on_piece(k3_encoder *e, k3_piece_fn fn, void *arg)
{
    e->on_piece = fn;
    e->piece_arg = arg;
}

/* Ids of a piece that the cache does not have, into out; 0 only if memory ran out. */
static size_t encode_anew(k3_encoder *e, const uint8_t *s, size_t n, uint64_t hash, uint32_t *out)
{
    if (n <= e->v->longest && (*out = k3_token_find(e->v, s, n, hash)) != NO_ID)
        return 1;
    return k3_merge(e->merger, s, n, out);
}

/* A piece that waits for its ids; the cache line it will look at is on its way. */
struct waiting {
    const uint8_t *s;
    size_t n;
    uint64_t lo, hi, hash;
};

static inline const uint8_t *look_ahead(k3_encoder *e, const uint8_t *p, const uint8_t *end, struct waiting *w)
{
    const uint8_t *next = k3_split_next(p, end);
    w->s = p;
    w->n = (size_t)(next - p);
    if (w->n <= HOT_BYTES) {
        short_key(p, w->n, &w->lo, &w->hi);
        w->hash = short_hash(w->lo, w->hi);
        __builtin_prefetch(e->hot[w->hash >> (64 - HOT_BITS)]);
    } else if (w->n <= e->v->longest) {
        w->hash = k3_token_hash(p, w->n);
    }
    return next;
}

static inline size_t encode_piece(k3_encoder *e, const struct waiting *w, uint32_t *out)
{
    if (w->n > HOT_BYTES)
        return encode_anew(e, w->s, w->n, w->hash, out);
    struct hot *const set = e->hot[w->hash >> (64 - HOT_BITS)];
    if (set[0].lo == w->lo && set[0].hi == w->hi) {
        memcpy(out, set[0].id, sizeof set[0].id);
        return set[0].n;
    }
    const struct hot older = set[0];
    if (set[1].lo == w->lo && set[1].hi == w->hi) {
        memcpy(out, set[1].id, sizeof set[1].id);
        set[0] = set[1];
        set[1] = older;
        return set[0].n;
    }
    const size_t k = encode_anew(e, w->s, w->n, w->hash, out);
    if (k && k <= HOT_IDS) {
        set[1] = older;
        set[0] = (struct hot){.lo = w->lo, .hi = w->hi, .n = (uint32_t)k};
        memcpy(set[0].id, out, k * sizeof *out);
    }
    return k;
}

/* Text without specials, [s, end), where *end may be overwritten for a while. */
static int encode_plain(k3_encoder *e, uint8_t *s, uint8_t *end, k3_ids *out, k3_err *err)
{
    struct waiting w[AHEAD];
    const uint8_t saved = *end;
    int status = 0;
    *end = 0xFF; /* belongs to no class, so no run needs to look for the end */
    for (const uint8_t *p = s; p < end && !status;) {
        size_t n = 0;
        while (n < AHEAD && p < end)
            p = look_ahead(e, p, end, &w[n++]);
        for (size_t i = 0; i < n && !status; i++) {
            const size_t k = encode_piece(e, &w[i], out->id + out->n);
            if (!k)
                status = k3_fail(err, K3_ESYS, "out of memory for a piece of %zu bytes", w[i].n);
            else if (e->on_piece)
                e->on_piece(e->piece_arg, (const char *)w[i].s, w[i].n, out->id + out->n, k);
            out->n += k;
        }
    }
    *end = saved;
    return status;
}

/* One chunk, [s, end). */
static int encode_chunk(k3_encoder *e, uint8_t *s, uint8_t *end, k3_ids *out, k3_err *err)
{
    uint32_t id;
    /* a text of n bytes has at most n ids */
    int status = k3_ids_reserve(out, (size_t)(end - s) + HOT_IDS, err);
    while (!status && e->special && s < end) {
        uint8_t *at = (uint8_t *)k3_special_find(e->v, s, end, &id);
        if (!at)
            break;
        size_t n;
        k3_vocab_bytes(e->v, id, &n);
        if ((status = encode_plain(e, s, at, out, err)))
            break;
        out->id[out->n] = id;
        if (e->on_piece)
            e->on_piece(e->piece_arg, (const char *)at, n, out->id + out->n, 1);
        out->n++;
        s = at + n;
    }
    return status ? status : encode_plain(e, s, end, out, err);
}

/* Goes on over the text, encoding each whole chunk; what is left then starts a chunk. */
static int advance(k3_encoder *e, bool final, k3_ids *out, k3_err *err)
{
    uint8_t *const s = (uint8_t *)e->text.data, *const end = s + e->text.n, *p = s + e->pos, *start = s;
    bool ended;
    while (p += k3_chunk_next(&e->chunk, p, end, final, &ended), ended) {
        int status = encode_chunk(e, start, p, out, err);
        if (status)
            return status;
        start = p;
    }
    e->pos = (size_t)(p - start);
    e->text.n -= (size_t)(start - s);
    if (start > s)
        memmove(s, start, e->text.n);
    return 0;
}

int k3_encoder_feed(k3_encoder *e, const void *text, size_t size, k3_ids *out, k3_err *err)
{
    const char *from = text;
    while (size) {
        const size_t n = size < FEED_BYTES ? size : FEED_BYTES;
        int status = k3_bytes_reserve(&e->text, n + 1 + SLACK, err);
        if (status)
            return status;
        memcpy(e->text.data + e->text.n, from, n);
        e->text.n += n;
        if ((status = advance(e, false, out, err)))
            return status;
        from += n;
        size -= n;
    }
    return 0;
}

int k3_encoder_end(k3_encoder *e, k3_ids *out, k3_err *err)
{
    int status = k3_bytes_reserve(&e->text, 1 + SLACK, err);
    if (!status)
        status = advance(e, true, out, err);
    if (!status)
        status = encode_chunk(e, (uint8_t *)e->text.data, (uint8_t *)e->text.data + e->text.n, out, err);
    e->text.n = e->pos = 0;
    e->chunk = (struct chunk_count){0};
    return status;
}

int k3_encode(k3_encoder *e, const void *text, size_t size, k3_ids *out, k3_err *err)
{
    int status = k3_encoder_feed(e, text, size, out, err);
    return status ? status : k3_encoder_end(e, out, err);
}
