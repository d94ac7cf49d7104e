/* SPDX-License-Identifier: Apache-2.0 */
/* How weights are best read from memory: the maker's usual way, and what a short measurement says.
 *
 * One product of a matrix in memory is timed with each way in turn, round after round, and the shortest time of each
 * counts: whatever disturbs the machine only makes times longer. Another way than the usual one must be clearly faster,
 * so that starts on a noisy machine agree. */
#define _GNU_SOURCE
#include "k3_kernel.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

enum { ROUNDS = 7, WAYS = 4, COLS = 4096, STRETCH = 8 << 20, STRETCH_ROWS = STRETCH / (2 * COLS) };
static const double clearly = 0.96; /* of the time of the usual way */

k3_reading k3_reading_usual(void)
{
#ifdef __x86_64__
    unsigned a, b, c, d;
    if (__get_cpuid(0, &a, &b, &c, &d) && b == signature_INTEL_ebx)
        return (k3_reading){.hint = K3_HINT_T0};
    return (k3_reading){.hint = K3_HINT_NTA};
#else
    return (k3_reading){.hint = K3_HINT_T0};
#endif
}

k3_reading k3_reading_kept(k3_reading r)
{
    r.hint = r.hint == K3_HINT_NTA ? K3_HINT_T0 : r.hint;
    return r;
}

const char *k3_hint_name(k3_hint hint)
{
    return hint == K3_HINT_NONE ? "none" : hint == K3_HINT_T0 ? "t0" : "nta";
}

size_t k3_reading_better(const double *seconds, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        best = seconds[i] < seconds[best] ? i : best;
    return seconds[best] < clearly * seconds[0] ? best : 0;
}

struct trial {
    const k3_kernels *k;
    const char *data; /* STRETCH bytes, not in the caches */
    const float *x;   /* [COLS] */
    char *memory;     /* of each worker: its scratch, then its results */
    k3_reading reading;
};

enum { WORKER = K3_SCRATCH_BYTES + STRETCH_ROWS * 4 };

static void multiply(void *arg, int worker, int workers)
{
    const struct trial *t = arg;
    size_t begin, end;
    k3_share(STRETCH_ROWS, 16, worker, workers, &begin, &end);
    char *mine = t->memory + (size_t)worker * WORKER;
    const k3_weights w = {.data = t->data + begin * 2 * COLS, .rows = end - begin, .cols = COLS};
    const k3_work work = {mine, t->reading};
    if (end > begin)
        t->k->mm_bf16((float *)(void *)(mine + K3_SCRATCH_BYTES), STRETCH_ROWS, &w, &(k3_vectors){t->x, 1, COLS}, &work);
}

/* The best of n ways, of which the first is the usual one. `at` walks round the buffer, so that each stretch has left
 * the caches when it comes again. */
static k3_reading best_of(struct trial *t, k3_pool *pool, const k3_reading *way, size_t n, const char *buffer, size_t bytes, size_t *at)
{
    double least[WAYS];
    for (size_t round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++) {
            t->data = buffer + *at;
            t->reading = way[i];
            *at = *at + 2 * STRETCH <= bytes ? *at + STRETCH : 0;
            double begin = k3_now();
            k3_pool_run(pool, multiply, t);
            double seconds = k3_now() - begin;
            least[i] = round == 0 || seconds < least[i] ? seconds : least[i];
        }
    return way[k3_reading_better(least, n)];
}

/* Hint first, then distance, then streams: what one of them is worth hardly depends on the others. */
static k3_reading choose(struct trial *t, k3_pool *pool, const char *buffer, size_t bytes)
{
    k3_reading r = k3_reading_usual(), way[WAYS];
    size_t at = 0, n = 1;
    way[0] = r;
    for (int hint = K3_HINT_NONE; hint <= K3_HINT_NTA; hint++)
        if (hint != (int)r.hint)
            way[n++] = (k3_reading){.hint = (k3_hint)hint};
    r = best_of(t, pool, way, n, buffer, bytes, &at);
    if (r.hint != K3_HINT_NONE) {
        const k3_reading distances[] = {r, {r.hint, 2048, 0}, {r.hint, 4096, 0}, {r.hint, 16384, 0}};
        r = best_of(t, pool, distances, 4, buffer, bytes, &at);
    }
    const k3_reading streams[] = {r, {r.hint, r.distance, 1}, {r.hint, r.distance, 2}, {r.hint, r.distance, 4}};
    return best_of(t, pool, streams, 4, buffer, bytes, &at);
}

bool k3_reading_measure(const k3_kernels *k, k3_pool *pool, uint64_t bytes, k3_reading *r)
{
    const size_t workers = (size_t)k3_pool_size(pool), fixed = 64 + COLS * sizeof(float) + workers * WORKER;
    *r = k3_reading_usual();
    if (bytes < fixed + 2 * STRETCH)
        return false;
    char *m = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED)
        return false;
    madvise(m, bytes, MADV_HUGEPAGE);
    memset(m, 0, bytes); /* pages of its own; zeros are read like any others */
    float *x = (float *)(void *)m;
    struct trial t = {.k = k, .x = x, .memory = m + (COLS * sizeof *x + 63) / 64 * 64};
    *r = choose(&t, pool, t.memory + workers * WORKER, bytes - fixed);
    munmap(m, bytes);
    return true;
}
