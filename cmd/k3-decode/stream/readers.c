/* SPDX-License-Identifier: Apache-2.0 */
/* Reader and checker threads. */
#include "readers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

/* Of a tile or of an expert. */
struct task {
    struct ring_entry *tile; /* NULL: of an expert */
    struct expert_job *expert;
    uint8_t *to;
    uint64_t bytes;
};

static double thread_seconds(void)
{
    struct timespec t;
    return clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) ? 0 : (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void pause_us(uint32_t us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    if (us)
        nanosleep(&t, NULL);
}

/* ---- what to read; these have the lock ---- */

/* How the tile at the ring's cursor is to be read. */
static const struct read_config *config_ahead(const struct streamer *s)
{
    return tune_config(&s->tune, s->ring.ahead_pass, ring_layer(&s->ring, s->ring.ahead_tile, s->tune.p.layers));
}

static struct ring_entry *pick_tile(struct streamer *s)
{
    return ring_behind(&s->ring) ? ring_pick(&s->ring, config_ahead(s)->tiles) : NULL;
}

/* Experts that the router waits for, then tiles, then, where the device has nothing else to do, guesses. Experts are
 * larger than tiles: a few keep the device as busy, and the first is here sooner. */
static bool pick_read(struct streamer *s, struct task *t)
{
    const struct read_config *config = config_ahead(s);
    if (s->flight.bytes >= s->flight.most_bytes || s->flight.reads >= config->reads)
        return false;
    *t = (struct task){0};
    t->expert = experts_pick(&s->experts, &t->to);
    if (!t->expert && (t->tile = pick_tile(s)))
        t->to = t->tile->to;
    if (t->tile && config_ahead(s)->reads > config->reads) /* the cursor is in another layer now */
        pthread_cond_broadcast(&s->work);
    if (!t->expert && !t->tile && (tune_as_planned(&s->tune, config) || !ring_behind(&s->ring)))
        t->expert = experts_pick_guess(&s->experts, &t->to);
    t->bytes = t->expert ? s->expert_room : s->buffer_bytes;
    return t->expert || t->tile;
}

static bool pick_check(struct streamer *s, struct task *t)
{
    *t = (struct task){.expert = experts_pick_check(&s->experts)};
    if (!t->expert)
        t->tile = ring_pick_check(&s->ring);
    return t->expert || t->tile;
}

/* The number of reads is about to change. */
static void count_busy(struct flight *f)
{
    double now = k3_now();
    if (f->reads)
        f->busy += now - f->since;
    f->since = now;
}

static void take_off(struct flight *f, uint64_t bytes)
{
    count_busy(f);
    f->reads++;
    f->bytes += bytes;
}

static void touch_down(struct flight *f, uint64_t bytes)
{
    count_busy(f);
    f->reads--;
    f->bytes -= bytes;
}

/* The data may be used, or the run must end. */
static void finish(struct streamer *s, const struct task *t, bool complete, const k3_err *why)
{
    const bool ok = !why->status;
    if (t->tile) {
        ring_finish(t->tile, ok);
        if (!ok && !s->tile_failure.status)
            s->tile_failure = *why;
    } else if (!experts_finish(&s->experts, t->expert, ok, complete) && !s->expert_failure.status) {
        k3_fail(&s->expert_failure, K3_EEXPERT, "expert %" PRIu16 " of layer %d: %.1900s", t->expert->number, t->expert->layer,
                why->text);
    }
    pthread_cond_broadcast(&s->done);
}

/* It is in memory: to be checked, unless nobody wants it any more. */
static void land(struct streamer *s, const struct task *t)
{
    if (t->tile)
        ring_landed(t->tile);
    else if (!experts_landed(&s->experts, t->expert))
        return;
    pthread_cond_signal(&s->landed);
}

/* ---- the work; without the lock ---- */

static int read_task(struct streamer *s, struct task *t, uint8_t *bounce, k3_err *err)
{
    pause_us(s->sizes.slow_us);
    if (!bounce)
        return k3_fail(err, K3_ESYS, "out of memory for a reader");
    return t->tile ? storage_read_tile(&s->storage, t->tile->tile, t->to, bounce, &t->tile->data, err)
                   : storage_read_expert(&s->storage, t->expert->layer, t->expert->number, t->to, t->expert->part, err);
}

static int check_task(const struct streamer *s, const struct task *t, k3_err *err)
{
    return t->tile ? storage_check_tile(&s->storage, t->tile->tile, t->tile->data, err)
                   : storage_check_expert(&s->storage, t->expert->layer, t->expert->number, t->expert->part, err);
}

/* ---- the threads ---- */

/* Sleeps but for moments between two reads, and those are what the device waits for: no other work is done here where
 * there are checkers. */
static void *reader(void *arg)
{
    struct streamer *s = arg;
    uint8_t *bounce = k3_big_alloc(storage_bounce_bytes(&s->storage), false);
    struct task t;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        k3_err why = {0};
        if (!pick_read(s, &t)) {
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        take_off(&s->flight, t.bytes);
        pthread_mutex_unlock(&s->lock);
        double wall = -k3_now(), cpu = -thread_seconds();
        const bool complete = !read_task(s, &t, bounce, &why);
        cpu += thread_seconds();
        wall += k3_now();
        if (complete && !s->sizes.checkers)
            check_task(s, &t, &why);
        pthread_mutex_lock(&s->lock);
        touch_down(&s->flight, t.bytes);
        if (t.tile && t.tile->buffer >= 0)
            tune_read_ends(&s->tune, wall, cpu);
        if (t.expert)
            pthread_cond_broadcast(&s->work); /* there is room for several tiles now */
        if (complete && s->sizes.checkers)
            land(s, &t);
        else
            finish(s, &t, complete, &why);
    }
    pthread_mutex_unlock(&s->lock);
    k3_big_free(bounce, storage_bounce_bytes(&s->storage));
    return NULL;
}

static void *checker(void *arg)
{
    struct streamer *s = arg;
    struct task t;
    /* Arithmetic that has its data comes first. The thread's own niceness, as Linux has it. */
    setpriority(PRIO_PROCESS, 0, 19);
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        k3_err why = {0};
        if (!pick_check(s, &t)) {
            pthread_cond_wait(&s->landed, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        check_task(s, &t, &why);
        pthread_mutex_lock(&s->lock);
        finish(s, &t, true, &why);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int readers_start(struct streamer *s, k3_err *err)
{
    sigset_t all, old;
    const uint32_t want = stream_threads(&s->sizes);
    if (!(s->thread = calloc(want, sizeof *s->thread)))
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu32 " threads", want);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    while (s->nthreads < want && !k3_thread_start(&s->thread[s->nthreads], s->nthreads < s->sizes.depth ? reader : checker, s))
        s->nthreads++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (s->nthreads < want)
        return k3_fail(err, K3_ESYS, "cannot start reader thread %" PRIu32 " of %" PRIu32, s->nthreads + 1, want);
    return 0;
}

void readers_stop(struct streamer *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->landed);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->nthreads; i++)
        pthread_join(s->thread[i], NULL);
    s->nthreads = 0;
}
