/* limits.h - what this machine can do at best: reading memory and fused multiply-adds.
 *
 * Both are measured beside every kernel, not once, so that another load on the
 * machine slows the limit and the kernel alike.
 */
#ifndef LIMITS_H
#define LIMITS_H

#include <stdint.h>
#include <string.h>

#include "k3_kernel.h"

typedef struct {
    const char *data;
    size_t size;            /* bytes to read, shared among the workers */
    long rounds;            /* of fused multiply-adds for each worker */
    int width;              /* floats in a vector: 16, 8 or 4 */
    volatile uint64_t sink; /* keeps the work from being dropped */
} limit_job;

enum { LIMIT_CHAINS = 12 };

typedef uint64_t u64x8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t u64x4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t u64x2 __attribute__((vector_size(16), aligned(8), may_alias));
typedef float f32x16 __attribute__((vector_size(64)));
typedef float f32x8 __attribute__((vector_size(32)));
typedef float f32x4 __attribute__((vector_size(16)));

/* One function to read memory and one to multiply and add, for one vector width. */
#define LIMIT_FUNCTIONS(NAME, TARGET, U, F)                                                                          \
    static inline TARGET uint64_t read_##NAME(const char *p, size_t n)                                               \
    {                                                                                                                \
        U a = {0}, b = {0}, c = {0}, d = {0};                                                                        \
        for (size_t i = 0; i + 4 * sizeof(U) <= n; i += 4 * sizeof(U)) {                                             \
            a ^= *(const U *)(p + i);                                                                                \
            b ^= *(const U *)(p + i + sizeof(U));                                                                    \
            c ^= *(const U *)(p + i + 2 * sizeof(U));                                                                \
            d ^= *(const U *)(p + i + 3 * sizeof(U));                                                                \
        }                                                                                                            \
        a ^= b ^ c ^ d;                                                                                              \
        return a[0] ^ a[1];                                                                                          \
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
        j->sink = read_w16(j->data + begin, end - begin);
    else if (j->width == 8)
        j->sink = read_w8(j->data + begin, end - begin);
    else
#endif
        j->sink = read_w4(j->data + begin, end - begin);
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
