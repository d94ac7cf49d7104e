/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of a vocabulary by id and by name, and the tables for looking them up. */
#include "text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

uint32_t k3_vocab_size(const k3_vocab *v)
{
    return v->ranks + K3_SPECIALS;
}

uint32_t k3_vocab_ranks(const k3_vocab *v)
{
    return v->ranks;
}

const char *k3_vocab_bytes(const k3_vocab *v, uint32_t id, size_t *size)
{
    *size = 0;
    if (id >= k3_vocab_size(v))
        return NULL;
    *size = v->offset[id + 1] - v->offset[id];
    return v->bytes + v->offset[id];
}

bool k3_vocab_is_named(const k3_vocab *v, uint32_t id)
{
    return id >= v->ranks && id - v->ranks < K3_SPECIALS && v->named[id - v->ranks];
}

int64_t k3_vocab_special(const k3_vocab *v, const char *name, size_t size)
{
    for (uint32_t id = v->ranks; id < v->ranks + K3_SPECIALS; id++)
        if (v->offset[id + 1] - v->offset[id] == size && !memcmp(v->bytes + v->offset[id], name, size))
            return id;
    return -1;
}

uint64_t k3_token_hash(const void *s, size_t n)
{
    uint64_t lo, hi;
    if (n > 15)
        return XXH3_64bits(s, n);
    short_key(s, n, &lo, &hi);
    return short_hash(lo, hi);
}

uint32_t k3_token_find(const k3_vocab *v, const void *s, size_t n, uint64_t hash)
{
    const uint32_t tag = (uint32_t)hash;
    const size_t mask = ((size_t)1 << v->slot_bits) - 1;
    for (size_t i = hash >> (64 - v->slot_bits);; i = (i + 1) & mask) {
        const uint64_t e = v->slot[i];
        if (!e)
            return NO_ID;
        if ((uint32_t)(e >> 32) != tag)
            continue;
        const uint32_t id = (uint32_t)e - 1, at = v->offset[id];
        if (v->offset[id + 1] - at == n && !memcmp(v->bytes + at, s, n))
            return id;
    }
}

/* Token `id` into the table; NO_ID, or the earlier id with the same bytes. */
static uint32_t insert(k3_vocab *v, uint32_t id)
{
    const char *s = v->bytes + v->offset[id];
    const size_t n = v->offset[id + 1] - v->offset[id], mask = ((size_t)1 << v->slot_bits) - 1;
    const uint64_t hash = k3_token_hash(s, n);
    size_t i = hash >> (64 - v->slot_bits);
    for (; v->slot[i]; i = (i + 1) & mask) {
        const uint32_t other = (uint32_t)v->slot[i] - 1, at = v->offset[other];
        if ((uint32_t)(v->slot[i] >> 32) == (uint32_t)hash && v->offset[other + 1] - at == n && !memcmp(v->bytes + at, s, n))
            return other;
    }
    v->slot[i] = hash << 32 | (id + 1);
    if (n == 2)
        v->pair[(uint8_t)s[0] << 8 | (uint8_t)s[1]] = id;
    return NO_ID;
}

int k3_vocab_index(k3_vocab *v, const char *dir, k3_err *err)
{
    for (v->slot_bits = 12; ((size_t)1 << v->slot_bits) < (size_t)v->ranks * 2;)
        v->slot_bits++;
    v->slot = calloc((size_t)1 << v->slot_bits, sizeof *v->slot);
    v->pair = malloc(65536 * sizeof *v->pair);
    v->special_start = calloc(8192, 1);
    if (!v->slot || !v->pair || !v->special_start)
        return k3_fail(err, K3_ESYS, "out of memory for the vocabulary's tables");
    memset(v->pair, 0xFF, 65536 * sizeof *v->pair);
    for (uint32_t id = 0; id < v->ranks; id++) {
        const uint32_t other = insert(v, id);
        if (other != NO_ID)
            return k3_fail(err, K3_EDATA, "%s/tiktoken.model: line %" PRIu32 ": the same token as on line %" PRIu32, dir, id + 1,
                           other + 1);
    }
    k3_vocab_index_specials(v);
    return 0;
}

static size_t name_size(const k3_vocab *v, unsigned i)
{
    return v->offset[v->ranks + i + 1] - v->offset[v->ranks + i];
}

void k3_vocab_index_specials(k3_vocab *v)
{
    for (unsigned i = 0; i < K3_SPECIALS; i++) {
        const uint8_t *name = (const uint8_t *)v->bytes + v->offset[v->ranks + i];
        const unsigned second = name_size(v, i) > 1 ? name[1] : 0, last = name_size(v, i) > 1 ? name[1] : 255;
        for (unsigned b = second; b <= last; b++)
            v->special_start[name[0] << 5 | b >> 3] |= (uint8_t)(1 << (b & 7));
        unsigned at = i; /* insertion sort, stable */
        for (; at && name_size(v, v->by_length[at - 1]) < name_size(v, i); at--)
            v->by_length[at] = v->by_length[at - 1];
        v->by_length[at] = (uint16_t)i;
    }
}

const uint8_t *k3_special_find(const k3_vocab *v, const uint8_t *p, const uint8_t *end, uint32_t *id)
{
    for (; p < end; p++) {
        if (!(v->special_start[p[0] << 5 | p[1] >> 3] >> (p[1] & 7) & 1))
            continue;
        for (unsigned k = 0; k < K3_SPECIALS; k++) {
            const unsigned i = v->by_length[k];
            const size_t n = name_size(v, i);
            if (n <= (size_t)(end - p) && !memcmp(p, v->bytes + v->offset[v->ranks + i], n)) {
                *id = v->ranks + i;
                return p;
            }
        }
    }
    return NULL;
}
