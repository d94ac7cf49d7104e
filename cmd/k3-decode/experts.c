/* Routed experts: which stay in slots, which pass through, and in what order they come. */
#include "streamer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int experts_init(struct streamer *s, k3_err *err)
{
    const k3_config *c = s->c;
    const struct stream_plan *p = &s->plan;
    if (!c->moe_layers || p->layers <= c->first_moe)
        return 0;
    k3_shape shape = {.layers = (int)c->layers, .first = (int)c->first_moe, .experts = (int)c->experts, .topk = (int)c->topk};
    int status = k3_policy_new(&s->policy, p->policy, &shape, p->expert_slots, err);
    if (status)
        return status;
    s->expert_room = streamer_expert_room(s->ix);
    s->slot_mem = p->expert_slots ? k3_big_alloc(p->expert_slots * s->expert_room, p->huge) : NULL;
    s->transit_mem = k3_big_alloc(p->transit * s->expert_room, p->huge);
    s->slot = calloc(p->expert_slots ? p->expert_slots : 1, sizeof *s->slot);
    s->transit_used = calloc(p->transit, sizeof *s->transit_used);
    s->job = calloc(c->experts, sizeof *s->job);
    s->ask = calloc(c->experts, sizeof *s->ask);
    s->slot_of = calloc(c->experts, sizeof *s->slot_of);
    s->hit = calloc(c->experts, sizeof *s->hit);
    if ((p->expert_slots && !s->slot_mem) || !s->transit_mem || !s->slot || !s->transit_used || !s->job || !s->ask ||
        !s->slot_of || !s->hit)
        return k3_fail(err, K3_ESYS, "out of memory for %" PRIu32 " expert slots of %" PRIu64 " bytes", p->expert_slots,
                       s->expert_room);
    for (uint32_t i = 0; i < p->expert_slots; i++)
        s->slot[i].layer = -1;
    return 0;
}

void experts_free(struct streamer *s)
{
    k3_policy_free(s->policy);
    k3_big_free(s->slot_mem, s->plan.expert_slots * s->expert_room);
    k3_big_free(s->transit_mem, s->plan.transit * s->expert_room);
    free(s->slot);
    free(s->transit_used);
    free(s->job);
    free(s->ask);
    free(s->slot_of);
    free(s->hit);
}

static int by_number(const void *a, const void *b)
{
    return ((const struct expert_job *)a)->number - ((const struct expert_job *)b)->number;
}

static int by_place(const void *a, const void *b)
{
    uint64_t x = ((const struct expert_job *)a)->place, y = ((const struct expert_job *)b)->place;
    return (x > y) - (x < y);
}

/* A job for expert `number`: resident, or to be read into its slot or a transit buffer. */
static void make_job(struct streamer *s, struct expert_job *j, int layer, uint16_t number, int32_t slot, bool hit)
{
    k3_extent at[K3_PARTS];
    *j = (struct expert_job){.state = JOB_QUEUED, .number = number, .slot = slot, .transit = -1};
    if (hit) {
        j->state = JOB_READY;
        memcpy(j->part, s->slot[slot].part, sizeof j->part);
        return;
    }
    k3_index_expert(s->ix, layer, number, at);
    j->place = (uint64_t)at[0].shard << 48 | at[0].offset;
    if (slot >= 0) {
        s->evictions += s->slot[slot].layer >= 0;
        s->slot[slot].layer = -1;
    }
}

int experts_want(k3_source *src, int layer, const uint16_t *experts, size_t n, bool ascending, k3_err *err)
{
    struct streamer *s = (struct streamer *)src;
    (void)err;
    for (size_t i = 0; i < n; i++)
        s->ask[i] = experts[i];
    pthread_mutex_lock(&s->lock);
    int hits = k3_policy_batch(s->policy, layer, s->ask, (int)n, s->slot_of, s->hit);
    for (size_t i = 0; i < n; i++)
        make_job(s, &s->job[i], layer, experts[i], s->slot_of[i], s->hit[i]);
    qsort(s->job, n, sizeof *s->job, ascending ? by_number : by_place);
    s->njobs = n;
    s->next_job = s->ntaken = 0;
    s->ascending = ascending;
    s->job_layer = layer;
    src->traffic.requests += n;
    src->traffic.hits += (uint64_t)hits;
    src->traffic.misses += n - (uint64_t)hits;
    pthread_cond_broadcast(&s->work);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

struct expert_job *experts_pick(struct streamer *s, uint8_t **buf)
{
    while (s->next_job < s->njobs && s->job[s->next_job].state != JOB_QUEUED)
        s->next_job++;
    if (s->next_job == s->njobs)
        return NULL;
    struct expert_job *j = &s->job[s->next_job];
    if (j->slot >= 0) {
        *buf = s->slot_mem + (uint64_t)j->slot * s->expert_room;
    } else {
        uint32_t t = 0;
        while (t < s->plan.transit && s->transit_used[t])
            t++;
        if (t == s->plan.transit)
            return NULL;
        s->transit_used[t] = true;
        j->transit = (int32_t)t;
        *buf = s->transit_mem + t * s->expert_room;
    }
    j->state = JOB_READING;
    s->next_job++;
    return j;
}

struct expert_job *experts_landed(struct streamer *s)
{
    for (size_t i = 0; i < s->next_job; i++)
        if (s->job[i].state == JOB_LANDED)
            return &s->job[i];
    return NULL;
}

void experts_arrived(struct streamer *s, struct expert_job *j, int status, const k3_err *why)
{
    if (status) {
        if (!s->expert_failure.status)
            k3_fail(&s->expert_failure, K3_EEXPERT, "expert %" PRIu16 " of layer %d: %.1900s", j->number, s->job_layer, why->text);
        j->state = JOB_FAILED;
        return;
    }
    if (j->slot >= 0) {
        s->slot[j->slot] = (struct expert_slot){.layer = s->job_layer, .number = j->number};
        memcpy(s->slot[j->slot].part, j->part, sizeof j->part);
    }
    j->arrival = ++s->arrivals;
    j->state = JOB_READY;
    s->base.traffic.expert_bytes += k3_expert_bytes(s->c);
}

/* The job to hand out now: the next in number, or the first to have arrived; NULL if it is not there yet. */
static struct expert_job *ready_job(struct streamer *s)
{
    struct expert_job *best = NULL;
    if (s->ascending) {
        struct expert_job *j = &s->job[s->ntaken];
        return j->state == JOB_READY ? j : NULL;
    }
    for (size_t i = 0; i < s->njobs; i++) {
        struct expert_job *j = &s->job[i];
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
    if (j->transit < 0)
        return;
    pthread_mutex_lock(&s->lock);
    s->transit_used[j->transit] = false;
    j->transit = -1;
    pthread_cond_signal(&s->work);
    pthread_mutex_unlock(&s->lock);
}
