/* Routed experts: which stay in slots, which pass through, and in what order they come. */
#include "streamer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* For experts without a slot. */
static uint32_t buffers(const struct stream_sizes *p)
{
    return p->transit + p->lookahead;
}

static uint64_t expert_memory(const struct streamer *s)
{
    return (s->plan.expert_slots + (uint64_t)buffers(&s->plan)) * s->expert_room;
}

int experts_init(struct streamer *s, k3_err *err)
{
    const k3_config *c = s->c;
    const struct stream_sizes *p = &s->plan;
    if (!c->moe_layers || p->layers <= c->first_moe)
        return 0;
    k3_shape shape = {.layers = (int)c->layers, .first = (int)c->first_moe, .experts = (int)c->experts, .topk = (int)c->topk};
    int status = k3_policy_new(&s->policy, p->policy, &shape, p->expert_slots, err);
    if (status)
        return status;
    s->expert_room = streamer_expert_room(s->ix);
    s->expert_mem = k3_big_alloc(expert_memory(s), p->huge);
    s->slot = calloc(p->expert_slots ? p->expert_slots : 1, sizeof *s->slot);
    s->buffer = calloc(buffers(p), sizeof *s->buffer);
    s->buffer_used = calloc(buffers(p), sizeof *s->buffer_used);
    s->job = calloc(c->experts, sizeof *s->job);
    s->own = calloc(c->experts, sizeof *s->own);
    s->guess = calloc(p->lookahead ? p->lookahead : 1, sizeof *s->guess);
    s->slot_of = calloc(c->experts, sizeof *s->slot_of);
    s->hit = calloc(c->experts, sizeof *s->hit);
    if (!s->expert_mem || !s->slot || !s->buffer || !s->buffer_used || !s->job || !s->own || !s->guess ||
        !s->slot_of || !s->hit)
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu32 " expert slots of %" PRIu64 " bytes", p->expert_slots,
                       s->expert_room);
    uint8_t *mem = s->expert_mem;
    for (uint32_t i = 0; i < p->expert_slots; i++, mem += s->expert_room)
        s->slot[i] = (struct expert_slot){.mem = mem, .layer = -1};
    for (uint32_t i = 0; i < buffers(p); i++, mem += s->expert_room)
        s->buffer[i] = mem;
    return 0;
}

void experts_free(struct streamer *s)
{
    k3_policy_free(s->policy);
    k3_big_free(s->expert_mem, expert_memory(s));
    free(s->slot);
    free(s->buffer);
    free(s->buffer_used);
    free(s->job);
    free(s->own);
    free(s->guess);
    free(s->slot_of);
    free(s->hit);
}

static int by_number(const void *a, const void *b)
{
    const struct expert_job *x = *(struct expert_job *const *)a, *y = *(struct expert_job *const *)b;
    return x->number - y->number;
}

static int by_place(const void *a, const void *b)
{
    const struct expert_job *x = *(struct expert_job *const *)a, *y = *(struct expert_job *const *)b;
    return (x->place > y->place) - (x->place < y->place);
}

/* What the slot held is gone. */
static void evict(struct streamer *s, int32_t slot)
{
    s->evictions += s->slot[slot].layer >= 0;
    s->slot[slot].layer = -1;
}

/* A job for expert `number`: resident, or to be read into its slot or a buffer. */
static void make_job(struct streamer *s, struct expert_job *j, int layer, uint16_t number, int32_t slot, bool hit)
{
    k3_extent at[K3_PARTS];
    *j = (struct expert_job){.state = JOB_QUEUED, .layer = layer, .number = number, .slot = slot, .buffer = -1};
    if (hit) {
        j->state = JOB_READY;
        memcpy(j->part, s->slot[slot].part, sizeof j->part);
        return;
    }
    k3_index_expert(s->ix, layer, number, at);
    j->place = (uint64_t)at[0].shard << 48 | at[0].offset;
    if (slot >= 0)
        evict(s, slot);
}

static bool take_buffer(struct streamer *s, struct expert_job *j)
{
    for (uint32_t i = 0; i < buffers(&s->plan); i++)
        if (!s->buffer_used[i]) {
            s->buffer_used[i] = true;
            j->buffer = (int32_t)i;
            return true;
        }
    return false;
}

static void give_buffer(struct streamer *s, struct expert_job *j)
{
    s->buffer_used[j->buffer] = false;
    j->buffer = -1;
}

/* An expert that was asked for is whole. */
static void publish(struct streamer *s, struct expert_job *j)
{
    if (j->slot >= 0) {
        struct expert_slot *slot = &s->slot[j->slot];
        slot->layer = j->layer;
        slot->number = j->number;
        memcpy(slot->part, j->part, sizeof slot->part);
    }
    j->arrival = ++s->arrivals;
    s->base.traffic.expert_bytes += k3_expert_bytes(s->c);
}

/* ---- guesses ---- */

/* One that was read for nothing. */
static void forget(struct streamer *s, struct expert_job *g)
{
    s->guesses.wasted += g->whole;
    give_buffer(s, g);
    g->state = JOB_FREE;
}

void experts_expect(k3_source *src, int layer, const uint16_t *experts, size_t n)
{
    struct streamer *s = (struct streamer *)src;
    size_t next = 0;
    pthread_mutex_lock(&s->lock);
    s->njobs = s->next_job = 0; /* the batch before is done, and with it the guesses that became part of it */
    for (uint32_t i = 0; i < s->plan.lookahead; i++) {
        struct expert_job *g = &s->guess[i];
        if (g->state != JOB_FREE && g->standing != WANTED)
            continue;
        while (next < n && k3_policy_slot(s->policy, layer, experts[next]) >= 0)
            next++;
        *g = (struct expert_job){.standing = GUESSED, .layer = layer, .slot = -1, .buffer = -1};
        if (next < n) {
            g->state = JOB_QUEUED;
            g->number = experts[next++];
            s->guesses.made++;
        }
    }
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
}

struct expert_job *experts_pick_guess(struct streamer *s, uint8_t **buf)
{
    for (uint32_t i = 0; i < s->plan.lookahead; i++) {
        struct expert_job *g = &s->guess[i];
        if (g->state != JOB_QUEUED || !take_buffer(s, g))
            continue;
        *buf = s->buffer[g->buffer];
        g->state = JOB_READING;
        return g;
    }
    return NULL;
}

/* The guess at that expert, as a job of the batch, if its read has begun; else NULL. */
static struct expert_job *right_guess(struct streamer *s, int layer, uint16_t number, int32_t slot)
{
    for (uint32_t i = 0; i < s->plan.lookahead; i++) {
        struct expert_job *g = &s->guess[i];
        if (g->state == JOB_FREE || g->standing != GUESSED || g->layer != layer || g->number != number)
            continue;
        s->guesses.right++;
        if (g->state == JOB_QUEUED)
            return NULL;
        g->standing = WANTED;
        if (slot >= 0) { /* the slot gets the buffer, wherever its read has got to, and gives up its own */
            uint8_t *mem = s->buffer[g->buffer];
            evict(s, slot);
            s->buffer[g->buffer] = s->slot[slot].mem;
            s->slot[slot].mem = mem;
            give_buffer(s, g);
            g->slot = slot;
        }
        s->guesses.early++;
        if (g->state == JOB_READY)
            publish(s, g);
        return g;
    }
    return NULL;
}

static void drop_guesses(struct streamer *s)
{
    for (uint32_t i = 0; i < s->plan.lookahead; i++) {
        struct expert_job *g = &s->guess[i];
        if (g->state == JOB_FREE || g->standing != GUESSED)
            continue;
        if (g->state == JOB_QUEUED)
            g->state = JOB_FREE;
        else if (g->state == JOB_LANDED || g->state == JOB_READY)
            forget(s, g);
        else
            g->standing = DROPPED;
    }
}

void experts_end(struct streamer *s)
{
    if (s->guess)
        drop_guesses(s);
}

/* ---- the batch ---- */

int experts_want(k3_source *src, int layer, const uint16_t *experts, size_t n, bool ascending, k3_err *err)
{
    struct streamer *s = (struct streamer *)src;
    (void)err;
    pthread_mutex_lock(&s->lock);
    int hits = k3_policy_batch(s->policy, layer, experts, (int)n, s->slot_of, s->hit);
    for (size_t i = 0; i < n; i++) {
        s->job[i] = s->hit[i] ? NULL : right_guess(s, layer, experts[i], s->slot_of[i]);
        if (s->job[i])
            continue;
        s->job[i] = &s->own[i];
        make_job(s, s->job[i], layer, experts[i], s->slot_of[i], s->hit[i]);
    }
    drop_guesses(s);
    qsort(s->job, n, sizeof *s->job, ascending ? by_number : by_place);
    s->njobs = n;
    s->next_job = s->ntaken = 0;
    s->ascending = ascending;
    src->traffic.requests += n;
    src->traffic.hits += (uint64_t)hits;
    src->traffic.misses += n - (uint64_t)hits;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

struct expert_job *experts_pick(struct streamer *s, uint8_t **buf)
{
    while (s->next_job < s->njobs && s->job[s->next_job]->state != JOB_QUEUED)
        s->next_job++;
    if (s->next_job == s->njobs)
        return NULL;
    struct expert_job *j = s->job[s->next_job];
    if (j->slot < 0 && !take_buffer(s, j))
        return NULL;
    *buf = j->slot >= 0 ? s->slot[j->slot].mem : s->buffer[j->buffer];
    j->state = JOB_READING;
    s->next_job++;
    return j;
}

struct expert_job *experts_landed(struct streamer *s)
{
    for (size_t i = 0; i < s->next_job; i++)
        if (s->job[i]->state == JOB_LANDED)
            return s->job[i];
    for (uint32_t i = 0; i < s->plan.lookahead; i++)
        if (s->guess[i].state == JOB_LANDED)
            return &s->guess[i];
    return NULL;
}

void experts_arrived(struct streamer *s, struct expert_job *j, int status, const k3_err *why)
{
    if (status && j->standing != WANTED) { /* nobody has asked for it; if somebody does, it is read then */
        forget(s, j);
        return;
    }
    if (status) {
        if (!s->expert_failure.status)
            k3_fail(&s->expert_failure, K3_EEXPERT, "expert %" PRIu16 " of layer %d: %.1900s", j->number, j->layer, why->text);
        j->state = JOB_FAILED;
        return;
    }
    j->state = JOB_READY;
    if (j->standing == WANTED)
        publish(s, j);
    else if (j->standing == DROPPED)
        forget(s, j);
}

/* The job to hand out now: the next in number, or the first to have arrived; NULL if it is not there yet. */
static struct expert_job *ready_job(struct streamer *s)
{
    struct expert_job *best = NULL;
    if (s->ascending) {
        struct expert_job *j = s->job[s->ntaken];
        return j->state == JOB_READY ? j : NULL;
    }
    for (size_t i = 0; i < s->njobs; i++) {
        struct expert_job *j = s->job[i];
        if (j->state == JOB_READY && !j->given && (!best || j->arrival < best->arrival))
            best = j;
    }
    return best;
}

int experts_take(k3_source *src, k3_expert *out, k3_err *err)
{
    struct streamer *s = (struct streamer *)src;
    struct expert_job *j;
    double t0 = 0;
    pthread_mutex_lock(&s->lock);
    while (!(j = ready_job(s)) && !s->expert_failure.status) {
        t0 = t0 ? t0 : k3_now();
        pthread_cond_wait(&s->done, &s->lock);
    }
    if (t0)
        s->wait_experts += k3_now() - t0;
    if (s->expert_failure.status) {
        *err = s->expert_failure;
        pthread_mutex_unlock(&s->lock);
        return K3_EEXPERT;
    }
    j->given = true;
    s->ntaken++;
    *out = (k3_expert){.number = j->number, .handle = j};
    memcpy(out->part, j->part, sizeof out->part);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

void experts_release(k3_source *src, k3_expert *e)
{
    struct streamer *s = (struct streamer *)src;
    struct expert_job *j = e->handle;
    if (j->buffer < 0)
        return;
    pthread_mutex_lock(&s->lock);
    give_buffer(s, j);
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
}
