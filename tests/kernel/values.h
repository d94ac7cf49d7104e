/* SPDX-License-Identifier: Apache-2.0 */
/* values.h - one test's state, its inputs and its verdict. */
#ifndef VALUES_H
#define VALUES_H

#include "contract.h"
#include "guard.h"

typedef struct {
    size_t n, rows, T; /* n: length, columns or head size; T: tokens, vectors or taps */
} shape;

typedef struct {
    const k3_kernels *K;
    guard_arena arena;
    uint64_t random;
    int values; /* kind of values, see value() */
    shape s;
    bool failed;
    bool bench;
    double ns; /* of the last call, when measuring */
} test;

static char now[256]; /* the case being run, for the fault handler */

/* ---- values ------------------------------------------------------------------ */

enum { ORDINARY, SMALL, SPECIAL, INFINITE, ANY, KINDS };

static uint32_t next(test *t)
{
    t->random = t->random * 6364136223846793005u + 1442695040888963407u;
    uint32_t x = (uint32_t)(t->random >> 33) ^ (uint32_t)(t->random >> 20);
    return x * 2654435761u ^ x >> 15;
}

/* -1..1, uniform */
static float unit(test *t)
{
    return (float)(int32_t)next(t) * 0x1p-31f;
}

static float value(test *t)
{
    static const float special[] = {0.0f,     0x1p-149f, 0x1.fffffcp-127f, 0x1p-126f, 1.0f,   0x1.fffffep127f,
                                    0x1p-75f, 0x1p64f,   0x1.000002p0f,    88.7f,     103.9f, 0x1p-24f};
    uint32_t u = next(t);
    switch (t->values) {
    case SMALL: /* products and sums that end among the denormals */
        return ldexpf(unit(t), -60 - (int)(u % 30));
    case SPECIAL:
    case INFINITE:
        if (t->values == INFINITE && u % 32 == 0)
            return u & 64 ? INFINITY : -INFINITY;
        if (u % 4 == 0)
            return (u & 64 ? 1.0f : -1.0f) * special[u / 128 % (sizeof special / sizeof *special)];
        return ldexpf(unit(t), (int)(u / 128 % 60) - 30);
    case ANY:
        return bits_to_float(u);
    default:
        return ldexpf(unit(t), (int)(u % 8) - 3);
    }
}

static float *floats(test *t, size_t n)
{
    float *p = guard_array(&t->arena, n * sizeof *p, sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = value(t);
    return p;
}

static uint16_t *halves(test *t, size_t n)
{
    uint16_t *p = guard_array(&t->arena, n * sizeof *p, sizeof *p);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint16_t)(float_to_bits(value(t)) >> 16);
    return p;
}

static uint8_t *bytes(test *t, size_t n)
{
    uint8_t *p = guard_array(&t->arena, n, 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)(next(t) >> 8);
    return p;
}

static uint8_t *scales(test *t, size_t n)
{
    static const uint8_t extreme[] = {0, 1, 2, 126, 127, 128, 253, 254, 255};
    uint8_t *p = guard_array(&t->arena, n, 1);
    for (size_t i = 0; i < n; i++)
        p[i] = t->values == ORDINARY ? (uint8_t)(118 + next(t) % 16)
               : t->values == SMALL  ? (uint8_t)(next(t) % 40)
               : next(t) % 2         ? extreme[next(t) % sizeof extreme]
                                     : (uint8_t)next(t);
    return p;
}

/* A copy outside the guards, for the reference. */
static float *copy(const float *p, size_t n)
{
    float *c = malloc(n * sizeof *c);
    if (!c)
        guard_fail("malloc");
    memcpy(c, p, n * sizeof *c);
    return c;
}

/* For the products; its pages are guarded like the arrays', and what it holds changes from case to case. */
static void *scratch(void)
{
    static guard_arena a;
    a.used = 0;
    a.at_end = 1;
    return guard_array(&a, K3_SCRATCH_BYTES, 64);
}

/* ---- results ------------------------------------------------------------------- */

static void compare(test *t, const char *what, size_t i, float got, float want)
{
    if (same(got, want) || t->failed)
        return;
    t->failed = true;
    printf("FAIL %s: %s[%zu] is %a, not %a\n", now, what, i, (double)got, (double)want);
}

static void compare_all(test *t, const char *what, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        compare(t, what, i, got[i], want[i]);
}

/* Runs the call once, or often enough to time it. */
#define CALL(t, call)                                                                                                \
    do {                                                                                                             \
        call;                                                                                                        \
        if ((t)->bench) {                                                                                            \
            double begin_ = k3_now(), end_ = begin_;                                                                 \
            long rounds_ = 0;                                                                                        \
            for (; (end_ = k3_now()) - begin_ < 0.05; rounds_++)                                                     \
                call;                                                                                                \
            (t)->ns = (end_ - begin_) * 1e9 / (double)rounds_;                                                       \
        }                                                                                                            \
    } while (0)

#endif
