/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed set of workers for parallel regions.
 *
 * Not OpenMP: its idle threads either spin, which steals the core from a
 * reader thread while the disk works, or need OMP_WAIT_POLICY set before
 * main; and ThreadSanitizer cannot see through libgomp. Workers here spin
 * for a few microseconds, because regions follow each other closely while
 * data is at hand, and then sleep. */
#define _GNU_SOURCE
#include "k3_base.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SPIN_ROUNDS = 2000 }; /* some tens of microseconds */

struct worker {
    k3_pool *pool;
    int index;
    pthread_t thread;
};

struct k3_pool {
    int size;
    int spin; /* rounds; none where threads outnumber cores: the spinner would hold up the one awaited */
    void (*fn)(void *, int, int);
    void *arg;
    bool stop;
    _Atomic uint32_t round;    /* advanced to start a region */
    _Atomic uint32_t pending;  /* workers that have not finished it */
    _Atomic uint32_t sleepers; /* workers that may be asleep on `round` */
    struct worker worker[];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word, int count)
{
    syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* waits longer than yield, which most processors ignore */
#endif
}

/* Returns once *word is no longer `seen`. */
static void wait_change(_Atomic uint32_t *word, uint32_t seen, _Atomic uint32_t *sleepers, int spin)
{
    for (int i = 0; i < spin; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen)
            return;
        relax();
    }
    atomic_fetch_add(sleepers, 1);
    while (atomic_load(word) == seen)
        futex_wait(word, seen);
    atomic_fetch_sub(sleepers, 1);
}

static void *work(void *arg)
{
    struct worker *w = arg;
    k3_pool *p = w->pool;
    uint32_t seen = 0;
    for (;;) {
        wait_change(&p->round, seen, &p->sleepers, p->spin);
        seen++;
        if (p->stop)
            return NULL;
        p->fn(p->arg, w->index, p->size);
        if (atomic_fetch_sub(&p->pending, 1) == 1)
            futex_wake(&p->pending, 1);
    }
}

int k3_thread_start(pthread_t *thread, void *(*fn)(void *), void *arg)
{
    enum { STACK_BYTES = 512 << 10 }; /* no frame is above 16 KiB; sanitizers need several times as much */
    pthread_attr_t attr;
    sigset_t all, old;
    int e = pthread_attr_init(&attr);
    if (e)
        return e;
    if (!(e = pthread_attr_setstacksize(&attr, STACK_BYTES))) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        e = pthread_create(thread, &attr, fn, arg);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    pthread_attr_destroy(&attr);
    return e;
}

int k3_pool_new(k3_pool **out, int threads, k3_err *err)
{
    *out = NULL;
    if (threads < 1)
        threads = 1;
    k3_pool *p = calloc(1, sizeof *p + (size_t)threads * sizeof *p->worker);
    if (!p)
        return k3_fail(err, K3_ESYS, "out of memory for %d threads", threads);
    p->size = 1;
    p->spin = threads <= k3_threads_default() ? SPIN_ROUNDS : 0;
    for (int i = 1; i < threads; i++) {
        p->worker[i] = (struct worker){.pool = p, .index = i};
        int e = k3_thread_start(&p->worker[i].thread, work, &p->worker[i]);
        if (e) {
            k3_pool_free(p);
            errno = e;
            return k3_fail_errno(err, NULL, "cannot start thread %d of %d", i + 1, threads);
        }
        p->size = i + 1;
    }
    *out = p;
    return 0;
}

int k3_pool_size(const k3_pool *p)
{
    return p ? p->size : 1;
}

static void start_round(k3_pool *p)
{
    atomic_fetch_add(&p->round, 1);
    if (atomic_load(&p->sleepers))
        futex_wake(&p->round, p->size);
}

void k3_pool_run(k3_pool *p, void (*fn)(void *, int, int), void *arg)
{
    if (!p || p->size == 1) {
        fn(arg, 0, 1);
        return;
    }
    p->fn = fn;
    p->arg = arg;
    atomic_store(&p->pending, (uint32_t)p->size - 1);
    start_round(p);
    fn(arg, 0, p->size);
    for (int i = 0; i < p->spin && atomic_load_explicit(&p->pending, memory_order_acquire); i++)
        relax();
    for (uint32_t left; (left = atomic_load(&p->pending));)
        futex_wait(&p->pending, left);
}

void k3_pool_free(k3_pool *p)
{
    if (!p)
        return;
    p->stop = true;
    start_round(p);
    for (int i = 1; i < p->size; i++)
        pthread_join(p->worker[i].thread, NULL);
    free(p);
}

void k3_share(size_t n, size_t grain, int worker, int workers, size_t *begin, size_t *end)
{
    size_t blocks = (n + grain - 1) / grain;
    size_t b = blocks * (size_t)worker / (size_t)workers, e = blocks * ((size_t)worker + 1) / (size_t)workers;
    *begin = b * grain < n ? b * grain : n;
    *end = e * grain < n ? e * grain : n;
}
