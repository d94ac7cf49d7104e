/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of a text: the official wrapper never gives the pre-split more than
 * 400,000 characters (a slice), and inside a slice never more than 25,000 in a
 * row that are all white space or all not. Ids at the end of a chunk differ
 * from those of the undivided text. */
#include "text.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define SLICE 400000u
#define RUN 25000u

/* Python's str.isspace() of one byte: the five controls, the four separators, the blank. */
static inline bool is_space_byte(uint8_t b)
{
    return (b >= 9 && b <= 13) || (b >= 28 && b <= 32);
}

/* The same for a well-formed sequence of more than one byte. */
static inline bool is_space_wide(const uint8_t *p)
{
    switch (p[0]) {
    case 0xC2:
        return p[1] == 0x85 || p[1] == 0xA0;
    case 0xE1:
        return p[1] == 0x9A && p[2] == 0x80;
    case 0xE2:
        return (p[1] == 0x80 && (p[2] <= 0x8A || p[2] == 0xA8 || p[2] == 0xA9 || p[2] == 0xAF)) || (p[1] == 0x81 && p[2] == 0x9F);
    case 0xE3:
        return p[1] == 0x80 && p[2] == 0x80;
    default:
        return false;
    }
}

/* One more character; false if the chunk must end before it. */
static inline bool count(struct chunk_count *c, bool space)
{
    const bool same = c->run && space == c->run_is_space;
    if (c->chars == SLICE) {
        *c = (struct chunk_count){0};
        return false;
    }
    if (same && c->run == RUN) {
        c->run = 0;
        return false;
    }
    c->run = same ? c->run + 1 : 1;
    c->run_is_space = space;
    c->chars++;
    return true;
}

/* Passes over blocks of 16 ASCII bytes in which no chunk can end. */
static const uint8_t *pass_ascii(struct chunk_count *c, const uint8_t *p, const uint8_t *end)
{
#ifdef __SSE2__
    for (; end - p >= 16 && c->chars + 16 <= SLICE && c->run + 16 <= RUN; p += 16, c->chars += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)p);
        if (_mm_movemask_epi8(v))
            break;
        const __m128i low = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8(8)), _mm_cmplt_epi8(v, _mm_set1_epi8(14)));
        const __m128i high = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8(27)), _mm_cmplt_epi8(v, _mm_set1_epi8(33)));
        const unsigned space = (unsigned)_mm_movemask_epi8(_mm_or_si128(low, high));
        const bool last = space >> 15;
        const unsigned other = last ? space ^ 0xFFFF : space; /* bytes not of the last one's kind */
        if (other)
            c->run = 15 - (31 - (unsigned)__builtin_clz(other));
        else
            c->run = 16 + (c->run_is_space == last ? c->run : 0);
        c->run_is_space = last;
    }
#else
    (void)c;
    (void)end;
#endif
    return p;
}

size_t k3_chunk_next(struct chunk_count *c, const uint8_t *p, const uint8_t *end, bool final, bool *ended)
{
    const uint8_t *const start = p;
    *ended = false;
    while (p < end) {
        const uint8_t *const next = pass_ascii(c, p, end);
        /* what stopped it lies in the next 16 bytes */
        const uint8_t *const stop = end - next > 16 ? next + 16 : end;
        for (p = next; p < stop;) {
            bool incomplete = false;
            const unsigned n = *p < 0x80 ? 1 : k3_utf8_length(p, end, &incomplete);
            if (incomplete && !final)
                return (size_t)(p - start);
            if (!count(c, n > 1 ? is_space_wide(p) : n && is_space_byte(*p))) {
                *ended = true;
                return (size_t)(p - start);
            }
            p += n ? n : 1;
        }
    }
    return (size_t)(p - start);
}

bool k3_all_space(const char *s, size_t n)
{
    const uint8_t *p = (const uint8_t *)s, *const end = p + n;
    while (p < end) {
        bool incomplete;
        const unsigned k = k3_utf8_length(p, end, &incomplete);
        if (!(k > 1 ? is_space_wide(p) : k && is_space_byte(*p)))
            return false;
        p += k;
    }
    return true;
}
