/* The ring of tiles, the reader threads and those that check what has come.
 *
 * Reading runs ahead of computing through the fixed order of use and does not
 * stop at a layer, a token or the head: the cursor (ahead_pass, ahead_tile)
 * goes round as long as a ring buffer is free. Pinned tiles are read by the
 * same cursor once, into memory that they keep. */
#include "streamer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* ---- the read-ahead cursor; callers hold the lock ---- */

/* Moves the cursor past tiles that need no read. False if there is nothing to read now. */
static bool settle_cursor(struct streamer *s)
{
    for (;;) {
        if (s->ahead_tile == s->order->head && s->ahead_tile < s->order->ntiles) {
            /* Whether the pass has a head is known once it has begun. */
            if (s->ahead_pass > s->pass)
                return false;
            if (!s->head)
                s->ahead_tile = s->order->ntiles;
        }
        if (s->ahead_tile == s->order->ntiles) {
            if (s->ahead_pass > s->pass || (s->ahead_pass == s->pass && !s->more))
                return false;
            s->ahead_pass++;
            s->ahead_tile = 0;
        }
        if (!s->pin[s->ahead_tile].asked)
            return true;
        s->ahead_tile++;
    }
}

/* How the tile at the cursor is to be read. */
static const struct way *way_ahead(const struct streamer *s)
{
    return tune_way(s, s->ahead_pass, s->ahead_tile);
}

static int32_t free_slot(const struct streamer *s)
{
    for (uint32_t i = 0; i < s->plan.ring; i++)
        if (!s->slot_used[i])
            return (int32_t)i;
    return -1;
}

/* The next tile to read, as an entry marked JOB_READING, or NULL. */
static struct entry *pick_tile(struct streamer *s)
{
    if (s->nentries == s->capacity || !settle_cursor(s) || s->nentries >= way_ahead(s)->tiles)
        return NULL;
    uint8_t *pin = s->pin[s->ahead_tile].buf;
    int32_t slot = pin ? -1 : free_slot(s);
    if (!pin && slot < 0)
        return NULL;
    struct entry *e = &s->entry[(s->first_entry + s->nentries++) % s->capacity];
    *e = (struct entry){.state = JOB_READING, .tile = s->ahead_tile++, .slot = slot};
    e->buf = pin ? pin : s->ring_mem + (uint64_t)slot * s->slot_bytes;
    if (slot >= 0)
        s->slot_used[slot] = true;
    s->pin[e->tile].asked = pin != NULL;
    return e;
}

/* Time in which the storage had something to do. */
static void count_busy(struct streamer *s)
{
    double now = k3_now();
    if (s->flight_bytes)
        s->busy += now - s->busy_since;
    s->busy_since = now;
}

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

/* A read or a check at hand: of an expert or of a tile. */
struct task {
    struct expert_job *expert; /* NULL: of a tile */
    struct entry *tile;
    uint8_t *buf;              /* of an expert */
    uint64_t bytes;
};

/* Experts are larger than tiles: a few keep the device as busy, and the first is here sooner. */
static bool pick_read(struct streamer *s, struct task *t)
{
    const struct way *way = way_ahead(s);
    if (s->flight_bytes >= s->flight_most || s->flight_reads >= way->reads)
        return false;
    t->expert = experts_pick(s, &t->buf);
    t->tile = t->expert ? NULL : pick_tile(s);
    if (t->tile && way_ahead(s)->reads > way->reads)
        pthread_cond_broadcast(&s->work);
    if (!t->expert && !t->tile && (way == s->tuner.way || !settle_cursor(s))) /* the device has nothing else to do */
        t->expert = experts_pick_guess(s, &t->buf);
    t->bytes = t->expert ? s->expert_room : s->slot_bytes;
    return t->expert || t->tile;
}

/* What has landed and is needed first. */
static bool pick_check(struct streamer *s, struct task *t)
{
    *t = (struct task){.expert = experts_landed(s)};
    for (uint32_t i = 0; !t->expert && !t->tile && i < s->nentries; i++) {
        struct entry *e = &s->entry[(s->first_entry + i) % s->capacity];
        if (e->state == JOB_LANDED)
            t->tile = e;
    }
    return t->expert || t->tile;
}

static int read_task(struct streamer *s, const struct task *t, uint8_t *bounce, k3_err *err)
{
    pause_us(s->plan.slow_us);
    if (!bounce)
        return k3_fail(err, K3_ESYS, "out of memory for a reader");
    return t->expert ? read_expert(s, t->expert->layer, t->expert->number, t->buf, t->expert->part, err)
                     : read_tile(s, t->tile->tile, t->tile->buf, bounce, &t->tile->data, err);
}

static int check_task(struct streamer *s, const struct task *t, k3_err *err)
{
    return t->expert ? check_expert(s, t->expert->layer, t->expert->number, t->expert->part, err)
                     : check_tile(s, t->tile->tile, t->tile->data, err);
}

static void set_state(const struct task *t, enum job_state state)
{
    *(t->expert ? &t->expert->state : &t->tile->state) = state;
}

/* The data may be used, or the run must end. */
static void finish_task(struct streamer *s, const struct task *t, int status, const k3_err *why)
{
    if (t->expert) {
        experts_arrived(s, t->expert, status, why);
    } else {
        if (status && !s->failure.status)
            s->failure = *why;
        t->tile->state = status ? JOB_FAILED : JOB_READY;
    }
    pthread_cond_broadcast(&s->done);
}

/* Sleeps but for moments between two reads, and those are what the device waits for:
 * no other work is done here where there are checkers. */
static void *reader(void *arg)
{
    struct streamer *s = arg;
    uint8_t *bounce = k3_big_alloc(reading_bounce_bytes(s), false);
    struct task t;
    pthread_mutex_lock(&s->lock);
    while (!s->stop) {
        k3_err why = {0};
        if (!pick_read(s, &t)) {
            pthread_cond_wait(&s->work, &s->lock);
            continue;
        }
        count_busy(s);
        s->flight_bytes += t.bytes;
        s->flight_reads++;
        pthread_mutex_unlock(&s->lock);
        double wall = -k3_now(), cpu = -thread_seconds();
        int status = read_task(s, &t, bounce, &why);
        cpu += thread_seconds();
        wall += k3_now();
        if (t.expert)
            t.expert->whole = !status;
        if (!status && !s->plan.checkers)
            status = check_task(s, &t, &why);
        pthread_mutex_lock(&s->lock);
        count_busy(s);
        s->flight_bytes -= t.bytes;
        s->flight_reads--;
        if (t.tile && t.tile->slot >= 0)
            tune_read(s, wall, cpu);
        if (t.expert)
            pthread_cond_broadcast(&s->work); /* there is room for several tiles now */
        if (status || !s->plan.checkers || (t.expert && t.expert->standing == DROPPED)) {
            finish_task(s, &t, status, &why);
        } else {
            set_state(&t, JOB_LANDED);
            pthread_cond_signal(&s->landed);
        }
    }
    pthread_mutex_unlock(&s->lock);
    k3_big_free(bounce, reading_bounce_bytes(s));
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
        set_state(&t, JOB_CHECKING);
        pthread_mutex_unlock(&s->lock);
        int status = check_task(s, &t, &why);
        pthread_mutex_lock(&s->lock);
        finish_task(s, &t, status, &why);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- what the forward pass calls ---- */

static int stream_begin(k3_source *src, bool head, bool more, k3_err *err)
{
    struct streamer *s = (struct streamer *)src;
    (void)err;
    pthread_mutex_lock(&s->lock);
    s->pass++;
    s->head = head;
    s->more = more;
    s->tile = s->piece = 0;
    if (s->ahead_pass < s->pass) {
        s->ahead_pass = s->pass;
        s->ahead_tile = 0;
    }
    src->traffic.passes++;
    tune_pass(s);
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* Waits for the tile at hand; data of its first piece. */
static int await_tile(struct streamer *s, const uint8_t **data, k3_err *err)
{
    double t0 = 0;
    int status = 0;
    pthread_mutex_lock(&s->lock);
    if (!s->pin[s->tile].data) {
        struct entry *e = &s->entry[s->first_entry];
        while (!(s->nentries && (e->state == JOB_READY || e->state == JOB_FAILED))) {
            t0 = t0 ? t0 : k3_now();
            pthread_cond_wait(&s->done, &s->lock);
        }
        if (t0)
            s->wait_trunk += k3_now() - t0;
        if (e->state == JOB_FAILED) {
            *err = s->failure;
            status = s->failure.status;
        } else if (e->tile != s->tile) {
            status = k3_fail(err, K3_ESYS, "tile %" PRIu32 " came for tile %" PRIu32, e->tile, s->tile);
        } else if (e->slot < 0) {
            s->pin[s->tile].data = e->data;
        }
        *data = e->data;
    } else {
        *data = s->pin[s->tile].data;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}

static int stream_next(k3_source *src, const k3_piece **piece, const void **data, k3_err *err)
{
    struct streamer *s = (struct streamer *)src;
    uint32_t end = s->head ? s->order->ntiles : s->order->head;
    const uint8_t *base;
    if (s->tile >= end)
        return k3_fail(err, K3_ESYS, "weights were asked for past the end of the pass");
    int status = await_tile(s, &base, err);
    if (status)
        return status;
    *piece = &s->order->pieces[s->order->tiles[s->tile].first + s->piece];
    *data = base + (*piece)->offset;
    return 0;
}

/* Weight bytes of a tile, without padding. */
static uint64_t tile_bytes(const struct streamer *s, const k3_tile *t)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < t->npieces; i++)
        bytes += s->order->pieces[t->first + i].bytes;
    return bytes;
}

/* What was read and no pass has used; the caller holds the lock. */
static uint64_t unused_bytes(const struct streamer *s)
{
    uint64_t bytes = s->guesses.wasted * k3_expert_bytes(s->c);
    for (uint32_t i = 0; i < s->nentries; i++)
        bytes += tile_bytes(s, &s->order->tiles[s->entry[(s->first_entry + i) % s->capacity].tile]);
    return bytes;
}

void stream_stats(struct streamer *s, struct stream_stats *out)
{
    pthread_mutex_lock(&s->lock); /* readers may be running ahead */
    *out = (struct stream_stats){.traffic = s->base.traffic, .evictions = s->evictions, .unused_bytes = unused_bytes(s),
                                 .guesses = s->guesses, .wait_trunk = s->wait_trunk, .wait_experts = s->wait_experts,
                                 .busy = s->busy, .pinned_bytes = s->pinned_bytes,
                                 .reads_in_flight = tune_way(s, 0, 0)->reads}; /* pass 0: not on trial */
    pthread_mutex_unlock(&s->lock);
}

k3_source *stream_source(struct streamer *s)
{
    return &s->base;
}

bool stream_cached(const struct streamer *s, int layer, uint16_t expert)
{
    return k3_policy_slot(s->policy, layer, expert) >= 0;
}

/* The piece at or after tile `*tile` with that row, and its tile; NULL if the pass has none. */
static const k3_piece *find_piece(const struct streamer *s, int layer, int tensor, uint64_t row, uint32_t *tile)
{
    for (; *tile < s->order->ntiles; ++*tile) {
        const k3_tile *t = &s->order->tiles[*tile];
        for (uint32_t i = t->first; i < t->first + t->npieces; i++) {
            const k3_piece *p = &s->order->pieces[i];
            if (p->layer == layer && p->tensor == tensor && row >= p->row0 && row < (uint64_t)p->row0 + p->rows)
                return p;
        }
    }
    return NULL;
}

static const void *stream_peek(k3_source *src, int layer, int tensor, uint64_t row, const k3_piece **piece)
{
    struct streamer *s = (struct streamer *)src;
    uint32_t tile = s->tile;
    *piece = find_piece(s, layer, tensor, row, &tile);
    const uint8_t *data = *piece ? s->pin[tile].data : NULL; /* set by this thread alone */
    return data ? data + (*piece)->offset : NULL;
}

/* The tile is done with: its ring buffer is free, or it stays for good. */
static void close_tile(struct streamer *s)
{
    const k3_tile *t = &s->order->tiles[s->tile];
    pthread_mutex_lock(&s->lock);
    struct entry *e = &s->entry[s->first_entry];
    if (s->nentries && e->tile == s->tile) { /* otherwise it was resident */
        *(t->layer < 0 ? &s->base.traffic.head_bytes : &s->base.traffic.trunk_bytes) += tile_bytes(s, t);
        if (e->slot >= 0)
            s->slot_used[e->slot] = false;
        e->state = JOB_FREE;
        s->first_entry = (s->first_entry + 1) % s->capacity;
        s->nentries--;
        pthread_cond_signal(&s->work);
    }
    s->tile++;
    s->piece = 0;
    if (s->tile == s->order->ntiles || s->order->tiles[s->tile].layer != t->layer) {
        tune_layer(s, s->tile - 1);
        pthread_cond_broadcast(&s->work); /* more may be in flight now */
    }
    pthread_mutex_unlock(&s->lock);
}

static void stream_release(k3_source *src)
{
    struct streamer *s = (struct streamer *)src;
    if (++s->piece == s->order->tiles[s->tile].npieces)
        close_tile(s);
}

static int stream_embed(k3_source *src, const uint32_t *ids, size_t n, uint16_t *rows, k3_err *err)
{
    struct streamer *s = (struct streamer *)src;
    uint64_t bytes = s->c->hidden * sizeof *rows;
    k3_extent at;
    k3_direct *d;
    k3_index_tensor(s->ix, -1, K3_T_EMBED, &at);
    int status = reading_shard(s, at.shard, &d, err);
    for (size_t i = 0; i < n && !status; i++) {
        uint16_t *row = rows + i * s->c->hidden;
        status = k3_pread_full(d->plain_fd, d->path, row, bytes, at.offset + ids[i] * bytes, err);
        if (!status)
            status = k3_sums_tensor(s->sums, -1, K3_T_EMBED, ids[i], 1, row, err);
        src->traffic.embed_bytes += bytes;
    }
    return status;
}

/* ---- opening and closing ---- */

void stream_stop(struct streamer *s)
{
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->work);
    pthread_cond_broadcast(&s->landed);
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < s->nthreads; i++)
        pthread_join(s->thread[i], NULL);
    s->nthreads = 0;
    experts_end(s);
}

void stream_close(struct streamer *s)
{
    if (!s)
        return;
    stream_stop(s);
    experts_free(s);
    for (uint32_t i = 0; s->shard && i < k3_index_shards(s->ix); i++)
        k3_direct_close(&s->shard[i]);
    k3_direct_close(&s->trunk_file);
    k3_trunk_close(s->trunk);
    k3_sums_close(s->sums);
    k3_big_free(s->ring_mem, s->ring_bytes);
    k3_big_free(s->pin_mem, s->pin_mem_bytes);
    k3_order_free(s->order);
    free(s->shard);
    free(s->thread);
    free(s->slot_used);
    free(s->pin);
    free(s->entry);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->work);
    pthread_cond_destroy(&s->landed);
    pthread_cond_destroy(&s->done);
    free(s);
}

static void close_source(k3_source *src)
{
    stream_close((struct streamer *)src);
}

static bool of_router(const struct streamer *s, const k3_tile *t)
{
    return s->order->pieces[t->first].tensor == K3_T_ROUTER;
}

static void pin(struct streamer *s, uint32_t tile, uint64_t *at)
{
    s->pin[tile].buf = s->pin_mem + *at;
    *at += reading_tile_room(s, &s->order->tiles[tile]);
    s->pinned_bytes += tile_bytes(s, &s->order->tiles[tile]);
}

/* Which tiles stay: routers that are to be asked ahead, then all alike, spread evenly by bytes, so that disk and
 * arithmetic alternate finely. */
static int choose_pins(struct streamer *s, k3_err *err)
{
    uint64_t total = 0, seen = 0, budget = s->plan.pin_bytes, at = 0, first;
    for (uint32_t i = 0; i < s->order->ntiles; i++)
        total += reading_tile_room(s, &s->order->tiles[i]);
    budget = budget < total ? budget : total;
    s->pin_mem_bytes = budget;
    if (!budget)
        return 0;
    if (!(s->pin_mem = k3_big_alloc(budget, s->plan.huge)))
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " bytes of pinned tiles", budget);
    for (uint32_t i = 0; i < s->order->ntiles && s->plan.lookahead; i++)
        if (of_router(s, &s->order->tiles[i]) && at + reading_tile_room(s, &s->order->tiles[i]) <= budget)
            pin(s, i, &at);
    first = at;
    for (uint32_t i = 0; i < s->order->ntiles; i++) {
        uint64_t room = reading_tile_room(s, &s->order->tiles[i]);
        if (s->pin[i].buf)
            continue;
        seen += room;
        /* Of what is left of the budget, seen / (total - first) should be pinned so far. */
        if (at + room <= budget && (long double)(at - first + room / 2) <=
                                       (long double)(budget - first) * (long double)seen / (long double)(total - first))
            pin(s, i, &at);
    }
    return 0;
}

static int start_threads(struct streamer *s, k3_err *err)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals are the main thread's */
    uint32_t want = streamer_threads(&s->plan);
    while (s->nthreads < want && !pthread_create(&s->thread[s->nthreads], NULL, s->nthreads < s->plan.depth ? reader : checker, s))
        s->nthreads++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (s->nthreads < want)
        return k3_fail(err, K3_ESYS, "cannot start reader thread %" PRIu32 " of %" PRIu32, s->nthreads + 1, want);
    return 0;
}

static int open_trunk(struct streamer *s, const char *path, k3_err *err)
{
    bool fallback = false;
    int status = k3_trunk_open(&s->trunk, path, s->ix, err);
    if (status)
        return status;
    s->plan.tile_bytes = k3_trunk_tile_bytes(s->trunk);
    status = k3_direct_open(&s->trunk_file, path, !s->plan.direct, &fallback, err);
    if (!status && fallback)
        k3_note("%s: no direct reads on this file system, using the page cache", path);
    s->said_fallback = fallback; /* once is enough */
    return status;
}

int stream_open(struct streamer **out, const struct stream_place *at, const k3_index *ix, const struct stream_sizes *plan, k3_err *err)
{
    char buf[4096];
    const char *trunk_path = stream_trunk_path(at, buf);
    *out = NULL;
    struct streamer *s = calloc(1, sizeof *s);
    if (!s)
        return k3_fail(err, K3_ESYS, "out of memory");
    s->base = (k3_source){.begin = stream_begin, .next = stream_next, .release = stream_release, .embed = stream_embed,
                          .want = experts_want, .expert = experts_take, .expert_release = experts_release,
                          .close = close_source};
    if (plan->lookahead) {
        s->base.peek = stream_peek;
        s->base.expect = experts_expect;
    }
    s->ix = ix;
    s->c = k3_index_config(ix);
    s->plan = *plan;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->work, NULL);
    pthread_cond_init(&s->landed, NULL);
    pthread_cond_init(&s->done, NULL);
    int status = trunk_path ? open_trunk(s, trunk_path, err) : 0;
    if (!status)
        status = k3_sums_open(&s->sums, ix, NULL, err);
    if (!status)
        status = k3_order_new(&s->order, s->c, 0, plan->layers, true, s->plan.tile_bytes, err);
    if (status)
        goto fail;
    s->base.order = s->order;
    s->ahead_pass = 1; /* reading starts before the first pass is begun */
    s->capacity = plan->ring + streamer_threads(plan);
    s->slot_bytes = k3_direct_room(s->order->largest);
    s->ring_bytes = plan->ring * s->slot_bytes;
    s->ring_mem = k3_big_alloc(s->ring_bytes, plan->huge);
    s->slot_used = calloc(plan->ring, sizeof *s->slot_used);
    s->pin = calloc(s->order->ntiles, sizeof *s->pin);
    s->entry = calloc(s->capacity, sizeof *s->entry);
    s->shard = calloc(k3_index_shards(ix), sizeof *s->shard);
    s->thread = calloc(streamer_threads(plan), sizeof *s->thread);
    if (!s->ring_mem || !s->slot_used || !s->pin || !s->entry || !s->shard || !s->thread) {
        status = k3_fail(err, K3_ESYS, "out of memory for a ring of %" PRIu64 " bytes", s->ring_bytes);
        goto fail;
    }
    if ((status = choose_pins(s, err)) || (status = experts_init(s, err)))
        goto fail;
    tune_init(s);
    s->flight_most = plan->depth * s->slot_bytes > 2 * s->expert_room ? plan->depth * s->slot_bytes : 2 * s->expert_room;
    if ((status = start_threads(s, err)))
        goto fail;
    *out = s;
    return 0;
fail:
    stream_close(s);
    return status;
}
