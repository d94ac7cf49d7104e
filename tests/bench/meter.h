/* SPDX-License-Identifier: Apache-2.0 */
/* meter.h - times of parallel regions beside the limits of the machine. */
#ifndef METER_H
#define METER_H

#include <stdlib.h>
#include <time.h>

#include "limits.h"

enum { MAX_SAMPLES = 101, MIN_SAMPLES = 7 };

/* Medians; the ratios are those of samples taken one after the other, so that a machine that is
 * fast for one second and slow for the next does not show in them. */
typedef struct {
    double seconds;           /* one run */
    double memory, fma;       /* bytes/s and flop/s of the machine */
    double of_memory, of_fma; /* shares of them */
} result;

typedef struct {
    k3_pool *pool;
    double budget; /* seconds for each measurement */
    bool cpu_time, quiet;
    limit_job limit; /* the fastest way to read */
} meter;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n)
{
    qsort(v, (size_t)n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

typedef struct {
    void (*fn)(void *, int, int);
    void *arg;
    double cpu[MAX_WORKERS]; /* seconds that each worker ran */
} timed_region;

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void timed_worker(void *arg, int worker, int workers)
{
    timed_region *r = arg;
    double begin = cpu_now();
    r->fn(r->arg, worker, workers);
    r->cpu[worker] = cpu_now() - begin;
}

/* Seconds of one parallel region: by the clock, or the longest time a worker was running. */
static double timed(const meter *m, void (*fn)(void *, int, int), void *arg)
{
    timed_region r = {.fn = fn, .arg = arg};
    double begin = k3_now(), longest = 0;
    if (!m->cpu_time) {
        k3_pool_run(m->pool, fn, arg);
        return k3_now() - begin;
    }
    k3_pool_run(m->pool, timed_worker, &r);
    for (int i = 0; i < k3_pool_size(m->pool); i++)
        longest = r.cpu[i] > longest ? r.cpu[i] : longest;
    return longest;
}

#endif
