/* SPDX-License-Identifier: Apache-2.0 */
/* The worker pool: every share once, whatever the number of workers. */
#include "k3_base.h"

#include <criterion/criterion.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ITEMS = 1003 };

struct count {
    atomic_int hits[ITEMS], calls;
    int workers, odd;
    size_t grain;
};

static void hit(void *arg, int worker, int workers)
{
    struct count *c = arg;
    size_t begin, end;
    atomic_fetch_add(&c->calls, 1);
    if (workers != c->workers || worker < 0 || worker >= workers)
        c->odd = 1;
    k3_share(ITEMS, c->grain, worker, workers, &begin, &end);
    for (size_t i = begin; i < end; i++)
        atomic_fetch_add(&c->hits[i], 1);
}

Test(base_pool, every_item_once_at_every_size)
{
    static const int sizes[] = {1, 2, 3, 5, 16, 64};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        k3_pool *pool;
        k3_err err = {0};
        cr_assert_eq(k3_pool_new(&pool, sizes[s], &err), 0, "%s", err.text);
        cr_expect_eq(k3_pool_size(pool), sizes[s]);
        /* many regions: a worker that misses one, or runs one twice, shows up */
        struct count *c = calloc(1, sizeof *c);
        c->workers = sizes[s];
        for (int round = 1; round <= 200; round++) {
            c->grain = (size_t)round % 40 + 1;
            k3_pool_run(pool, hit, c);
            cr_assert_eq(c->calls, round * sizes[s], "round %d returned before all were done", round);
            if (round % 50 == 0)
                usleep(1000); /* long enough for the workers to fall asleep */
        }
        for (int i = 0; i < ITEMS; i++)
            cr_assert_eq(c->hits[i], 200, "item %d", i);
        cr_expect(!c->odd);
        free(c);
        k3_pool_free(pool);
    }
}

Test(base_pool, no_pool_is_one_thread)
{
    struct count *c = calloc(1, sizeof *c);
    c->workers = 1;
    c->grain = 7;
    cr_expect_eq(k3_pool_size(NULL), 1);
    k3_pool_run(NULL, hit, c);
    cr_expect(c->calls == 1 && !c->odd && c->hits[ITEMS - 1] == 1);
    k3_pool_free(NULL);
    free(c);
}

/* Writes of one region are seen in the next, whoever runs it. */
static void add_left(void *arg, int worker, int workers)
{
    long *v = arg; /* [2][64] */
    v[64 + worker] = v[(worker + 1) % workers] + 1;
}

static void copy_back(void *arg, int worker, int workers)
{
    long *v = arg;
    (void)workers;
    v[worker] = v[64 + worker];
}

Test(base_pool, regions_are_ordered)
{
    k3_pool *pool;
    long v[128] = {0};
    cr_assert_eq(k3_pool_new(&pool, 3, NULL), 0);
    for (int i = 0; i < 20000; i++) {
        k3_pool_run(pool, add_left, v);
        k3_pool_run(pool, copy_back, v);
    }
    cr_expect(v[0] == 20000 && v[1] == 20000 && v[2] == 20000);
    k3_pool_free(pool);
}

/* Shares cover n without gap or overlap and begin at multiples of the grain. */
Test(base_pool, shares)
{
    for (size_t n = 0; n < 70; n++)
        for (size_t grain = 1; grain < 20; grain += 3)
            for (int workers = 1; workers < 12; workers++) {
                size_t next = 0, begin, end;
                for (int w = 0; w < workers; w++) {
                    k3_share(n, grain, w, workers, &begin, &end);
                    cr_assert(begin == next && end >= begin && (begin % grain == 0 || begin == n), "n %zu grain %zu worker %d of %d",
                              n, grain, w, workers);
                    next = end;
                }
                cr_assert_eq(next, n);
            }
}

Test(base_pool, clock_threads_and_memory)
{
    double t = k3_now();
    cr_expect_geq(k3_threads_default(), 1);
    cr_expect_leq(k3_threads_default(), sysconf(_SC_NPROCESSORS_CONF));
    /* the peak follows what is touched, and does not fall when it is given back */
    uint64_t before = k3_peak_rss();
    char *volatile p = malloc(64 << 20);
    memset(p, 1, 64 << 20);
    uint64_t with = k3_peak_rss();
    free(p);
    uint64_t after = k3_peak_rss();
    /* the kernel counts in batches: a few pages may still be missing */
    cr_expect(before > 0 && with >= before + (60 << 20) && after >= with - (1 << 20), "%lu %lu %lu", before, with, after);
    cr_expect_geq(k3_now(), t);
}
