/* SPDX-License-Identifier: Apache-2.0 */
/* Byte pair merging: from single bytes, join the adjacent pair whose
 * concatenation has the lowest rank, leftmost on ties, until none is a token.
 * A rank is an id. Short pieces scan for the lowest pair; long ones keep a heap. */
#include "text.h"

#include <stdlib.h>

#define SHORT 64 /* bytes; up to here scanning is faster */

/* Remembers what two tokens join to. */
struct joined {
    uint64_t pair; /* left << 32 | right, plus 1; 0 is free */
    uint32_t id, unused;
};
#define JOINED_BITS 15

/* A long piece: its tokens as a doubly linked list indexed by their first byte. */
struct node {
    uint32_t prev, next; /* first byte of the neighbours; the piece's size behind the last */
    uint32_t id;         /* this token, NO_ID once joined to the one before */
    uint32_t rank;       /* id of this token joined with the next, or NO_ID */
};

struct k3_merger {
    const k3_vocab *v;
    struct joined *joined; /* [1 << JOINED_BITS] */
    struct node *node;     /* [cap] */
    uint64_t *heap;        /* [2 * cap] rank << 32 | first byte, some of them out of date */
    size_t cap;
};

int k3_merger_new(k3_merger **merger, const k3_vocab *v, k3_err *err)
{
    k3_merger *m = calloc(1, sizeof *m);
    if (m)
        m->joined = calloc((size_t)1 << JOINED_BITS, sizeof *m->joined);
    *merger = m;
    if (!m || !m->joined)
        return k3_fail(err, K3_ESYS, "out of memory for the encoder");
    m->v = v;
    return 0;
}

void k3_merger_free(k3_merger *m)
{
    if (!m)
        return;
    free(m->joined);
    free(m->node);
    free(m->heap);
    free(m);
}

/* The token left+right, whose n bytes are at s, or NO_ID. */
static inline uint32_t join(k3_merger *m, uint32_t left, uint32_t right, const uint8_t *s, size_t n)
{
    if (n > m->v->longest)
        return NO_ID;
    const uint64_t pair = ((uint64_t)left << 32 | right) + 1;
    struct joined *j = &m->joined[pair * 0x9E3779B97F4A7C15u >> (64 - JOINED_BITS)];
    if (j->pair != pair) {
        j->id = k3_token_find(m->v, s, n, k3_token_hash(s, n));
        j->pair = pair;
    }
    return j->id;
}

static size_t merge_short(k3_merger *m, const uint8_t *s, size_t n, uint32_t *out)
{
    uint8_t start[SHORT + 1]; /* token i is s[start[i] .. start[i+1]) */
    uint32_t rank[SHORT];     /* of token i joined with the next */
    size_t tokens = n;
    for (size_t i = 0; i < n; i++) {
        start[i] = (uint8_t)i;
        out[i] = m->v->byte_id[s[i]];
        rank[i] = i + 1 < n ? m->v->pair[s[i] << 8 | s[i + 1]] : NO_ID;
    }
    start[n] = (uint8_t)n;
    for (;;) {
        size_t at = 0;
        for (size_t i = 1; i + 1 < tokens; i++)
            if (rank[i] < rank[at])
                at = i;
        if (tokens == 1 || rank[at] == NO_ID)
            return tokens;
        out[at] = rank[at];
        tokens--;
        memmove(start + at + 1, start + at + 2, (tokens - at) * sizeof *start);
        memmove(out + at + 1, out + at + 2, (tokens - at - 1) * sizeof *out);
        memmove(rank + at + 1, rank + at + 2, (tokens - at - 1) * sizeof *rank);
        rank[at] = at + 1 < tokens ? join(m, out[at], out[at + 1], s + start[at], start[at + 2] - start[at]) : NO_ID;
        if (at)
            rank[at - 1] = join(m, out[at - 1], out[at], s + start[at - 1], start[at + 1] - start[at - 1]);
    }
}

static void sift_down(uint64_t *heap, size_t n, size_t i)
{
    const uint64_t moving = heap[i];
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] < heap[child])
            child++;
        if (heap[child] >= moving)
            break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}

static void push(uint64_t *heap, size_t *n, uint64_t value)
{
    size_t i = (*n)++;
    for (; i && heap[(i - 1) / 2] > value; i = (i - 1) / 2)
        heap[i] = heap[(i - 1) / 2];
    heap[i] = value;
}

static uint64_t pop(uint64_t *heap, size_t *n)
{
    const uint64_t least = heap[0];
    heap[0] = heap[--*n];
    if (*n)
        sift_down(heap, *n, 0);
    return least;
}

/* Recomputes what the token at `i` and its next join to. */
static void look(k3_merger *m, const uint8_t *s, size_t n, uint32_t i, size_t *pending)
{
    struct node *const node = m->node;
    const uint32_t next = node[i].next;
    if (next == n) {
        node[i].rank = NO_ID;
        return;
    }
    node[i].rank = join(m, node[i].id, node[next].id, s + i, node[next].next - i);
    if (node[i].rank != NO_ID)
        push(m->heap, pending, (uint64_t)node[i].rank << 32 | i);
}

/* Room for a piece of n bytes. The heap holds at most n - 1 pairs to begin
 * with, and every join takes one out and puts in at most two. */
static bool k3_grow(k3_merger *m, size_t n)
{
    if (n <= m->cap)
        return true;
    free(m->node);
    free(m->heap);
    m->node = malloc(n * sizeof *m->node);
    m->heap = malloc(2 * n * sizeof *m->heap);
    m->cap = m->node && m->heap ? n : 0;
    if (m->cap)
        return true;
    free(m->node);
    free(m->heap);
    m->node = NULL;
    m->heap = NULL;
    return false;
}

static size_t merge_long(k3_merger *m, const uint8_t *s, size_t n, uint32_t *out)
{
    size_t pending = 0, tokens = 0;
    if (n >= UINT32_MAX || !k3_grow(m, n))
        return 0;
    struct node *const node = m->node;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rank = i + 1 < n ? m->v->pair[s[i] << 8 | s[i + 1]] : NO_ID;
        node[i] = (struct node){i - 1, i + 1, m->v->byte_id[s[i]], rank};
        if (rank != NO_ID)
            m->heap[pending++] = (uint64_t)rank << 32 | i;
    }
    for (size_t i = pending / 2; i-- > 0;)
        sift_down(m->heap, pending, i);
    while (pending) {
        const uint64_t least = pop(m->heap, &pending);
        const uint32_t i = (uint32_t)least, rank = (uint32_t)(least >> 32);
        if (node[i].id == NO_ID || node[i].rank != rank)
            continue;
        const uint32_t gone = node[i].next;
        node[i].id = rank;
        node[i].next = node[gone].next;
        node[gone].id = NO_ID;
        if (node[i].next < n)
            node[node[i].next].prev = i;
        look(m, s, n, i, &pending);
        if (i)
            look(m, s, n, node[i].prev, &pending);
    }
    for (uint32_t i = 0; i < n; i = node[i].next)
        out[tokens++] = node[i].id;
    return tokens;
}

size_t k3_merge(k3_merger *m, const uint8_t *s, size_t n, uint32_t *out)
{
    return n <= SHORT ? merge_short(m, s, n, out) : merge_long(m, s, n, out);
}
