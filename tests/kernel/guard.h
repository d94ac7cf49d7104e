/* SPDX-License-Identifier: Apache-2.0 */
/* guard.h - arrays that notice a kernel leaving its bounds.
 *
 * Each array lies between two inaccessible pages, flush with one of them, so
 * that one element too many faults; the rest of its pages is filled with a
 * pattern that is checked after the call. Flush with the end gives every
 * alignment an odd size can give.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD_SLOTS = 8, GUARD_PAGE = 65536, GUARD_BYTE = 0xA5 };

typedef struct {
    uint8_t *map; /* GUARD_PAGE + room + GUARD_PAGE */
    size_t room;
    uint8_t *data; /* the array now in it */
    size_t size;
} guard_slot;

typedef struct {
    guard_slot slot[GUARD_SLOTS];
    int used;
    int at_end; /* the next array is flush with the end */
} guard_arena;

static inline void guard_fail(const char *what)
{
    perror(what);
    exit(3);
}

static inline void guard_map(guard_slot *s, size_t size)
{
    if (s->map && munmap(s->map, s->room + 2 * GUARD_PAGE))
        guard_fail("munmap");
    s->room = (size + GUARD_PAGE) / GUARD_PAGE * GUARD_PAGE;
    s->map = mmap(NULL, s->room + 2 * GUARD_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s->map == MAP_FAILED || mprotect(s->map + GUARD_PAGE, s->room, PROT_READ | PROT_WRITE))
        guard_fail("mmap");
}

/* `size` bytes of an array whose elements have `align` bytes; all start as the pattern. */
static inline void *guard_array(guard_arena *g, size_t size, size_t align)
{
    if (g->used == GUARD_SLOTS)
        abort();
    guard_slot *s = &g->slot[g->used++];
    if (!s->map || s->room < size || s->room > 4 * size + 16 * GUARD_PAGE)
        guard_map(s, size);
    uint8_t *begin = s->map + GUARD_PAGE;
    size_t slack = s->room - size;
    s->data = begin + (g->at_end ? slack : slack < align ? 0 : align); /* align: off the 64-byte line */
    s->size = size;
    memset(begin, GUARD_BYTE, s->room);
    g->at_end ^= 1;
    return s->data;
}

/* 0, or the number of the array whose surroundings were written, from 1. */
static inline int guard_broken(const guard_arena *g)
{
    for (int i = 0; i < g->used; i++) {
        const guard_slot *s = &g->slot[i];
        for (const uint8_t *p = s->map + GUARD_PAGE; p < s->map + GUARD_PAGE + s->room; p++)
            if (*p != GUARD_BYTE && (p < s->data || p >= s->data + s->size))
                return i + 1;
    }
    return 0;
}

#endif
