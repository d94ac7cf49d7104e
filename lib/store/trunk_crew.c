/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that take tile after tile, so that several reads and writes are in flight. */
#include "trunk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

struct hand {
    struct crew *crew;
    int number;
    pthread_t thread;
};

int k3_crew_size(const k3_pack_opts *o, uint32_t n)
{
    return (uint32_t)o->depth < n ? o->depth : n ? (int)n : 1;
}

static void *work(void *arg)
{
    struct hand *h = arg;
    struct crew *c = h->crew;
    pthread_mutex_lock(&c->lock);
    while (!c->stop && c->next < c->n && !k3_interrupted) {
        uint32_t tile = c->next++;
        k3_pack_state did = {0};
        k3_err err = {0};
        pthread_mutex_unlock(&c->lock);
        int status = c->tile(c, c->arg, h->number, tile, &did, &err);
        pthread_mutex_lock(&c->lock);
        c->now.bytes_done += did.bytes_done;
        c->now.kept += did.kept;
        c->now.read += did.read;
        c->now.written += did.written;
        c->now.holes += did.holes;
        c->now.tiles_done += !status;
        if (status && !c->stop) {
            c->failure = err;
            c->stop = true;
        }
    }
    c->running--;
    pthread_cond_signal(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* The caller watches: it shows how far things are, and signals reach it alone. */
static void watch(struct crew *c, double began)
{
    pthread_mutex_lock(&c->lock);
    while (c->running) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        t.tv_nsec += 100000000;
        t.tv_sec += t.tv_nsec / 1000000000;
        t.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&c->changed, &c->lock, &t);
        c->now.seconds = k3_now() - began;
        if (c->o->progress) {
            k3_pack_state now = c->now;
            pthread_mutex_unlock(&c->lock);
            c->o->progress(c->o->arg, &now);
            pthread_mutex_lock(&c->lock);
        }
    }
    pthread_mutex_unlock(&c->lock);
}

/* Returns how many of n hands were started; *status tells why not all. */
static int start(struct crew *c, struct hand *hands, int n, int *status, k3_err *err)
{
    sigset_t all, old;
    int failed = 0, started = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_mutex_lock(&c->lock);
    for (; started < n && !failed; started += !failed) {
        hands[started] = (struct hand){.crew = c, .number = started};
        failed = k3_thread_start(&hands[started].thread, work, &hands[started]);
    }
    c->running = started;
    c->stop = failed != 0;
    pthread_mutex_unlock(&c->lock);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = failed;
    *status = failed ? k3_fail_errno(err, NULL, "cannot start thread %d of %d", started + 1, n) : 0;
    return started;
}

int k3_crew_run(struct crew *c, uint32_t n, uint64_t bytes, k3_err *err)
{
    int size = k3_crew_size(c->o, n);
    struct hand *hands = calloc((size_t)size, sizeof *hands);
    pthread_condattr_t monotonic;
    if (!hands)
        return k3_fail(err, K3_ESYS, "out of memory for %d threads", size);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&c->lock, NULL);
    sem_init(&c->compute, 0, (unsigned)c->o->threads);
    c->next = 0;
    c->n = n;
    c->now = (k3_pack_state){.tiles = n, .bytes = bytes};
    double began = k3_now();
    int status, started = start(c, hands, size, &status, err);
    watch(c, began);
    for (int i = 0; i < started; i++)
        pthread_join(hands[i].thread, NULL);
    if (!status && c->failure.status) {
        if (err)
            *err = c->failure;
        status = c->failure.status;
    }
    if (!status && c->now.tiles_done < n)
        status = k3_fail(err, K3_ESYS, "interrupted");
    sem_destroy(&c->compute);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(hands);
    return status;
}
