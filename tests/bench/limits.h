/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - what this machine can do at best: reading memory, changing it in place, and fused multiply-adds.
 *
 * They are measured beside every kernel, not once, so that another load on the
 * machine slows the limit and the kernel alike.
 */
#ifndef LIMITS_H
#define LIMITS_H

#include <stdint.h>
#include <string.h>

#include "k3_kernel.h"

typedef struct {
    char *data;
    size_t size;            /* bytes of it, shared among the workers */
    long rounds;            /* of fused multiply-adds for each worker */
    int width;              /* floats in a vector: 16, 8 or 4 */
    int streams, hint;      /* how to read: so many places at once; K3_HINT_* */
    volatile uint64_t sink; /* keeps the work from being dropped */
} limit_job;

enum { LIMIT_STREAMS = 8, LIMIT_CHAINS = 12 };

typedef uint64_t u64x8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t u64x4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t u64x2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef float f32x16 __attribute__((vector_size(64)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x4 __attribute__((vector_size(16)));

#define LIMIT_CASES(NAME, S)                                                                                         \
    case S * 4 + K3_HINT_NONE:                                                                                       \
        return pattern_##NAME(p, n, S, K3_HINT_NONE);                                                                \
    case S * 4 + K3_HINT_T0:                                                                                         \
        return pattern_##NAME(p, n, S, K3_HINT_T0);                                                                  \
    case S * 4 + K3_HINT_NTA:                                                                                        \
        return pattern_##NAME(p, n, S, K3_HINT_NTA);

/* Functions to read memory, to change it and to multiply and add, for one vector width. */
#define LIMIT_FUNCTIONS(NAME, TARGET, U, F)                                                                          \
    static inline TARGET __attribute__((always_inline)) uint64_t pattern_##NAME(const char *p, size_t n, size_t streams, int hint) \
    {                                                                                                                \
        enum { LINE = 64, PER_LINE = LINE / sizeof(U), AHEAD = 8192 };                                               \
        U sum[LIMIT_STREAMS] = {{0}};                                                                                \
        const size_t part = n / streams / LINE * LINE;                                                               \
        for (size_t i = 0; i < part; i += LINE)                                                                      \
            LIMIT_UNROLL for (size_t s = 0; s < streams; s++)                                                        \
            {                                                                                                        \
                const char *q = p + s * part + i;                                                                    \
                if (hint == K3_HINT_NTA)                                                                             \
                    __builtin_prefetch(q + AHEAD / streams, 0, 0);                                                   \
                else if (hint == K3_HINT_T0)                                                                         \
                    __builtin_prefetch(q + AHEAD / streams, 0, 3);                                                   \
                LIMIT_UNROLL for (size_t j = 0; j < PER_LINE; j++) sum[s] ^= ((const U *)q)[j];                      \
            }                                                                                                        \
        LIMIT_UNROLL for (size_t s = 1; s < streams; s++) sum[0] ^= sum[s];                                          \
        return sum[0][0] ^ sum[0][1];                                                                                \
    }                                                                                                                \
    static inline TARGET uint64_t read_##NAME(const char *p, size_t n, int streams, int hint)                        \
    {                                                                                                                \
        switch (streams * 4 + hint) {                                                                                \
            LIMIT_CASES(NAME, 1)                                                                                     \
            LIMIT_CASES(NAME, 2)                                                                                     \
            LIMIT_CASES(NAME, 4)                                                                                     \
            LIMIT_CASES(NAME, 8)                                                                                     \
        default:                                                                                                     \
            return 0;                                                                                                \
        }                                                                                                            \
    }                                                                                                                \
    static inline TARGET void update_##NAME(char *p, size_t n)                                                       \
    {                                                                                                                \
        for (size_t i = 0; i + sizeof(U) <= n; i += sizeof(U))                                                       \
            *(U *)(p + i) ^= 1;                                                                                      \
    }                                                                                                                \
    static inline TARGET uint64_t fma_##NAME(long rounds)                                                            \
    {                                                                                                                \
        F acc[LIMIT_CHAINS], m = (F){0} + 0.999f, b = (F){0} + 0.001f;                                               \
        LIMIT_UNROLL for (int i = 0; i < LIMIT_CHAINS; i++) acc[i] = (F){0} + (float)i;                              \
        for (long r = 0; r < rounds; r++)                                                                            \
            LIMIT_UNROLL for (int i = 0; i < LIMIT_CHAINS; i++) LIMIT_FMA(NAME, acc[i], m, b);                       \
        LIMIT_UNROLL for (int i = 1; i < LIMIT_CHAINS; i++) acc[0] += acc[i];                                        \
        return acc[0][0] > 0;                                                                                        \
    }

#ifdef __clang__
#define LIMIT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LIMIT_UNROLL _Pragma("GCC unroll 16")
#endif
#define LIMIT_FMA(NAME, acc, m, b) LIMIT_FMA_##NAME(acc, m, b)
#define LIMIT_FMA_w4(acc, m, b) acc = acc * m + b
#define LIMIT_FMA_w8(acc, m, b) __asm__("vfmadd213ps %2, %1, %0" : "+x"(acc) : "x"(m), "x"(b))
#define LIMIT_FMA_w16(acc, m, b) __asm__("vfmadd213ps %2, %1, %0" : "+v"(acc) : "v"(m), "v"(b))

LIMIT_FUNCTIONS(w4, , u64x2, f32x4)
#ifdef __x86_64__
LIMIT_FUNCTIONS(w8, __attribute__((target("avx2,fma"))), u64x4, f32x8)
LIMIT_FUNCTIONS(w16, __attribute__((target("avx512f"))), u64x8, f32x16)
#endif

static inline int limit_width(const k3_kernels *K)
{
    return strcmp(K->name, "avx512") == 0 ? 16 : strcmp(K->name, "avx2") == 0 ? 8 : 4;
}

static inline void limit_read(void *arg, int worker, int workers)
{
    limit_job *j = arg;
    size_t begin, end;
    k3_share(j->size, 4096, worker, workers, &begin, &end);
#ifdef __x86_64__
    if (j->width == 16)
        j->sink = read_w16(j->data + begin, end - begin, j->streams, j->hint);
    else if (j->width == 8)
        j->sink = read_w8(j->data + begin, end - begin, j->streams, j->hint);
    else
#endif
        j->sink = read_w4(j->data + begin, end - begin, j->streams, j->hint);
}

/* Each byte is read and written. */
static inline void limit_update(void *arg, int worker, int workers)
{
    limit_job *j = arg;
    size_t begin, end;
    k3_share(j->size, 4096, worker, workers, &begin, &end);
#ifdef __x86_64__
    if (j->width == 16)
        update_w16(j->data + begin, end - begin);
    else if (j->width == 8)
        update_w8(j->data + begin, end - begin);
    else
#endif
        update_w4(j->data + begin, end - begin);
}

static inline void limit_fma(void *arg, int worker, int workers)
{
    (void)worker;
    (void)workers;
    limit_job *j = arg;
#ifdef __x86_64__
    if (j->width == 16)
        j->sink = fma_w16(j->rounds);
    else if (j->width == 8)
        j->sink = fma_w8(j->rounds);
    else
#endif
        j->sink = fma_w4(j->rounds);
}

/* Floating-point operations of one limit_fma over all workers. */
static inline double limit_flops(const limit_job *j, int workers)
{
    return 2.0 * LIMIT_CHAINS * j->width * (double)j->rounds * workers;
}

#endif
