/* SPDX-License-Identifier: Apache-2.0 */
/* The pre-split: one piece at a time by the eight alternatives, first that matches wins.
 *   1  [Han]+                 5  ' '? OTHER+ [\r\n]*
 *   2  LEAD? UP* LO+ C?       6  \s* [\r\n]+
 *   3  LEAD? UP+ LO* C?       7  \s+ (?!\S)
 *   4  NUMBER{1,3}            8  \s+
 * A byte that is no part of well-formed UTF-8 has no class and is a piece of its own. */
#include "text.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define S CLASS_SPACE
#define W CLASS_LEAD
#define WS (CLASS_SPACE | CLASS_LEAD)
#define NL (CLASS_SPACE | CLASS_NEWLINE)
#define X (CLASS_OTHER | CLASS_LEAD)
#define U CLASS_UP
#define L CLASS_LO
#define N CLASS_NUMBER
/* Bytes from 0x80 on are left 0: they need decoding. */
static const uint8_t ascii[256] = {
    X, X, X, X, X, X, X, X, X, WS, NL, WS, WS, NL, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X,
    WS, X, X, X, X, X, X, X, X, X, X, X, X, X, X, X, N, N, N, N, N, N, N, N, N, N, X, X, X, X, X, X,
    X, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, U, X, X, X, X, X,
    X, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, X, X, X, X, X,
};
#undef S
#undef W
#undef WS
#undef NL
#undef X
#undef U
#undef L
#undef N

unsigned k3_utf8_length(const uint8_t *p, const uint8_t *end, bool *incomplete)
{
    const size_t left = (size_t)(end - p);
    uint8_t low = 0x80, high = 0xBF; /* range of the second byte */
    unsigned n;
    *incomplete = false;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    for (unsigned i = 1; i < n; i++, low = 0x80, high = 0xBF) {
        if (i >= left) {
            *incomplete = true;
            return 0;
        }
        if (p[i] < low || p[i] > high)
            return 0;
    }
    return n;
}

/* Class of a sequence that does not start with ASCII, its bytes in *n; no class and 1 byte if it is none. */
static unsigned wide_class(const uint8_t *p, unsigned *n)
{
    bool incomplete;
    uint32_t c;
    switch (*n = k3_utf8_length(p, p + 4, &incomplete)) {
    case 2:
        c = (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
        break;
    case 3:
        c = (p[0] & 0x0Fu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
        break;
    case 4:
        c = (p[0] & 0x07u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
        break;
    default:
        *n = 1;
        return 0;
    }
    return k3_class_of[k3_class_block[c >> 7]][c & 127];
}

static inline unsigned class_at(const uint8_t *p, unsigned *n)
{
    *n = 1;
    return *p < 0x80 ? ascii[*p] : wide_class(p, n);
}

/* End of the run of a..z at p, 16 bytes at a time: words differ too much in length for a branch per byte. */
static inline const uint8_t *lower_run(const uint8_t *p)
{
#ifdef __SSE2__
    for (;; p += 16) {
        const __m128i v = _mm_loadu_si128((const __m128i *)p);
        const __m128i in = _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('a' - 1)), _mm_cmplt_epi8(v, _mm_set1_epi8('z' + 1)));
        const unsigned out = (unsigned)_mm_movemask_epi8(in) ^ 0xFFFF;
        if (out)
            return p + __builtin_ctz(out);
    }
#else
    while (*p >= 'a' && *p <= 'z')
        p++;
    return p;
#endif
}

/* End of the run of characters that have a class in `set`. */
static inline const uint8_t *run_of(const uint8_t *p, unsigned set)
{
    unsigned n;
    for (;;) {
        while (ascii[*p] & set)
            p++;
        if (*p < 0x80 || !(wide_class(p, &n) & set))
            return p;
        p += n;
    }
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)? at p; U+017F folds to s. */
static const uint8_t *contraction(const uint8_t *p)
{
    if (*p != '\'')
        return p;
    switch (p[1] | 0x20) {
    case 's': case 't': case 'm': case 'd':
        return p + 2;
    case 'r': case 'v':
        return (p[2] | 0x20) == 'e' ? p + 3 : p;
    case 'l':
        return (p[2] | 0x20) == 'l' ? p + 3 : p;
    default:
        return p[1] == 0xC5 && p[2] == 0xBF ? p + 3 : p;
    }
}

/* Alternatives 2 and 3 for the text at p, whose first character has class
 * `lead` and may be taken by LEAD? if q is behind it (else q = p). NULL if neither matches. */
static const uint8_t *word(const uint8_t *p, const uint8_t *q, unsigned lead)
{
    const uint8_t *e = q, *after_lower = NULL;
    unsigned n, c;
    while ((c = class_at(e, &n)) & CLASS_UP) {
        e += n;
        if (c & CLASS_LO)
            after_lower = e;
    }
    if (c & CLASS_LO)
        return contraction(run_of(e + n, CLASS_LO));
    /* UP* has taken all; it gives back until LO+ can have one character, */
    if (after_lower)
        return contraction(after_lower);
    /* and LEAD? gives back a mark, which LO+ takes. */
    if (q > p && (lead & CLASS_LO))
        return contraction(q);
    return e > q ? contraction(e) : NULL;
}

/* Alternatives 6, 7, 8: the text at p starts with white space. */
static const uint8_t *spaces(const uint8_t *p, const uint8_t *end)
{
    const uint8_t *e = p, *last = p, *after_newline = NULL;
    unsigned n, c;
    while ((c = class_at(e, &n)) & CLASS_SPACE) {
        last = e;
        e += n;
        if (c & CLASS_NEWLINE)
            after_newline = e;
    }
    if (after_newline)
        return after_newline;
    return e == end || last == p ? e : last;
}

const uint8_t *k3_split_next(const uint8_t *p, const uint8_t *end)
{
    /* most pieces by far: a lower-case ASCII word, perhaps behind a blank */
    const uint8_t *e = p + (*p == ' '), *const first = e;
    e = lower_run(e);
    if (e > first && *e < 0x80 && *e != '\'')
        return e;
    unsigned n, c = class_at(p, &n);
    if (c & CLASS_HAN)
        return run_of(p + n, CLASS_HAN);
    if ((e = word(p, c & CLASS_LEAD ? p + n : p, c)))
        return e;
    if (c & CLASS_NUMBER) {
        e = p + n;
        for (int i = 1; i < 3 && class_at(e, &n) & CLASS_NUMBER; i++)
            e += n;
        return e;
    }
    const uint8_t *q = *p == ' ' ? p + 1 : p;
    if (class_at(q, &n) & CLASS_OTHER) {
        e = run_of(q + n, CLASS_OTHER);
        while (*e == '\r' || *e == '\n')
            e++;
        return e;
    }
    return c & CLASS_SPACE ? spaces(p, end) : p + 1;
}
