/* SPDX-License-Identifier: Apache-2.0 */
/* Routed experts: slots, the batch at hand, guesses. */
#include "experts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* For experts without a slot. */
static uint32_t buffers(const struct expert_params *p)
{
    return p->transit + p->lookahead;
}

uint64_t experts_memory(const struct expert_params *p)
{
    return (p->slots + (uint64_t)buffers(p)) * p->room;
}

int experts_init(struct experts *x, const struct expert_params *p, uint8_t *memory, k3_err *err)
{
    size_t n = (size_t)p->shape.experts;
    *x = (struct experts){.p = *p};
    int status = k3_policy_new(&x->policy, p->policy, &p->shape, p->slots, err);
    if (status)
        return status;
    x->slot = calloc(p->slots ? p->slots : 1, sizeof *x->slot);
    x->buffer = calloc(buffers(p), sizeof *x->buffer);
    x->buffer_used = calloc(buffers(p), sizeof *x->buffer_used);
    x->job = calloc(n, sizeof *x->job);
    x->own = calloc(n, sizeof *x->own);
    x->guess = calloc(p->lookahead ? p->lookahead : 1, sizeof *x->guess);
    x->slot_of = calloc(n, sizeof *x->slot_of);
    x->hit = calloc(n, sizeof *x->hit);
    if (!x->slot || !x->buffer || !x->buffer_used || !x->job || !x->own || !x->guess || !x->slot_of || !x->hit)
        return k3_fail(err, K3_ESYS, "out of memory for the tables of %" PRIu32 " expert slots", p->slots);
    for (uint32_t i = 0; i < p->slots; i++, memory += p->room)
        x->slot[i] = (struct expert_slot){.memory = memory, .layer = -1};
    for (uint32_t i = 0; i < buffers(p); i++, memory += p->room)
        x->buffer[i] = memory;
    return 0;
}

void experts_free(struct experts *x)
{
    k3_policy_free(x->policy);
    free(x->slot);
    free(x->buffer);
    free(x->buffer_used);
    free(x->job);
    free(x->own);
    free(x->guess);
    free(x->slot_of);
    free(x->hit);
    *x = (struct experts){0};
}

/* ---- memory ---- */

static bool take_buffer(struct experts *x, struct expert_job *j)
{
    for (uint32_t i = 0; i < buffers(&x->p); i++)
        if (!x->buffer_used[i]) {
            x->buffer_used[i] = true;
            j->buffer = (int32_t)i;
            return true;
        }
    return false;
}

static void give_buffer(struct experts *x, struct expert_job *j)
{
    if (j->buffer >= 0)
        x->buffer_used[j->buffer] = false;
    j->buffer = -1;
}

/* What the slot held is gone. */
static void evict(struct experts *x, int32_t slot)
{
    x->count.evictions += x->slot[slot].layer >= 0;
    x->slot[slot].layer = -1;
}

/* The slot gets the memory of the job's buffer, wherever its read has got to, and gives up its own. */
static void trade(struct experts *x, struct expert_job *j, int32_t slot)
{
    uint8_t *memory = x->buffer[j->buffer];
    evict(x, slot);
    x->buffer[j->buffer] = x->slot[slot].memory;
    x->slot[slot].memory = memory;
    give_buffer(x, j);
    j->slot = slot;
}

/* An expert that the router wants is whole. */
static void publish(struct experts *x, struct expert_job *j)
{
    if (j->slot >= 0) {
        struct expert_slot *slot = &x->slot[j->slot];
        slot->layer = j->layer;
        slot->number = j->number;
        memcpy(slot->part, j->part, sizeof slot->part);
    }
    j->arrival = ++x->arrivals;
    x->count.bytes += x->p.bytes;
}

/* ---- guesses ---- */

/* A guess that has ended and that nobody wants. */
static void forget(struct experts *x, struct expert_job *g)
{
    x->count.guesses.wasted += g->complete;
    give_buffer(x, g);
    g->state = EXPERT_FREE;
}

void experts_expect(struct experts *x, int layer, const uint16_t *experts, size_t n)
{
    size_t next = 0;
    x->njobs = x->next_job = 0; /* and with the batch before end the guesses that became part of it */
    for (uint32_t i = 0; i < x->p.lookahead; i++) {
        struct expert_job *g = &x->guess[i];
        if (g->state != EXPERT_FREE && g->user != FOR_ROUTER)
            continue;
        while (next < n && k3_policy_slot(x->policy, layer, experts[next]) >= 0)
            next++;
        *g = (struct expert_job){.user = FOR_GUESS, .layer = layer, .slot = -1, .buffer = -1};
        if (next < n) {
            g->state = EXPERT_QUEUED;
            g->number = experts[next++];
            x->count.guesses.made++;
        }
    }
}

struct expert_job *experts_pick_guess(struct experts *x, uint8_t **to)
{
    for (uint32_t i = 0; i < x->p.lookahead; i++) {
        struct expert_job *g = &x->guess[i];
        if (g->state != EXPERT_QUEUED || g->user != FOR_GUESS || !take_buffer(x, g))
            continue;
        *to = x->buffer[g->buffer];
        g->state = EXPERT_READING;
        return g;
    }
    return NULL;
}

/* The guess at that expert as a job of the batch, if its read has begun; else NULL. */
static struct expert_job *right_guess(struct experts *x, int layer, uint16_t number, int32_t slot)
{
    for (uint32_t i = 0; i < x->p.lookahead; i++) {
        struct expert_job *g = &x->guess[i];
        if (g->state == EXPERT_FREE || g->user != FOR_GUESS || g->layer != layer || g->number != number)
            continue;
        x->count.guesses.right++;
        if (g->state == EXPERT_QUEUED)
            return NULL;
        g->user = FOR_ROUTER;
        if (slot >= 0)
            trade(x, g, slot);
        x->count.guesses.early++;
        if (g->state == EXPERT_READY)
            publish(x, g);
        return g;
    }
    return NULL;
}

static void drop_guesses(struct experts *x)
{
    for (uint32_t i = 0; i < x->p.lookahead; i++) {
        struct expert_job *g = &x->guess[i];
        if (g->state == EXPERT_FREE || g->user != FOR_GUESS)
            continue;
        if (g->state == EXPERT_READING || g->state == EXPERT_CHECKING)
            g->user = FOR_NOBODY; /* its memory is free when that ends */
        else
            forget(x, g);
    }
}

void experts_end(struct experts *x)
{
    if (x->guess)
        drop_guesses(x);
}

/* ---- the batch ---- */

static int by_number(const void *a, const void *b)
{
    const struct expert_job *x = *(struct expert_job *const *)a, *y = *(struct expert_job *const *)b;
    return x->number - y->number;
}

static int by_file_order(const void *a, const void *b)
{
    const struct expert_job *x = *(struct expert_job *const *)a, *y = *(struct expert_job *const *)b;
    return (x->file_order > y->file_order) - (x->file_order < y->file_order);
}

/* Resident, or to be read into its slot or a buffer. */
static struct expert_job *new_job(struct experts *x, struct expert_job *j, int layer, uint16_t number, int32_t slot, bool hit)
{
    *j = (struct expert_job){.state = EXPERT_QUEUED, .layer = layer, .number = number, .slot = slot, .buffer = -1};
    if (hit) {
        j->state = EXPERT_READY;
        memcpy(j->part, x->slot[slot].part, sizeof j->part);
        return j;
    }
    j->file_order = x->p.file_order(x->p.arg, layer, number);
    if (slot >= 0)
        evict(x, slot);
    return j;
}

void experts_want(struct experts *x, int layer, const uint16_t *experts, size_t n, bool ascending)
{
    int hits = k3_policy_batch(x->policy, layer, experts, (int)n, x->slot_of, x->hit);
    for (size_t i = 0; i < n; i++) {
        struct expert_job *guessed = x->hit[i] ? NULL : right_guess(x, layer, experts[i], x->slot_of[i]);
        x->job[i] = guessed ? guessed : new_job(x, &x->own[i], layer, experts[i], x->slot_of[i], x->hit[i]);
    }
    drop_guesses(x);
    qsort(x->job, n, sizeof *x->job, ascending ? by_number : by_file_order);
    x->njobs = n;
    x->next_job = x->handed_out = 0;
    x->ascending = ascending;
    x->count.requests += n;
    x->count.hits += (uint64_t)hits;
}

struct expert_job *experts_pick(struct experts *x, uint8_t **to)
{
    while (x->next_job < x->njobs && x->job[x->next_job]->state != EXPERT_QUEUED)
        x->next_job++;
    if (x->next_job == x->njobs)
        return NULL;
    struct expert_job *j = x->job[x->next_job];
    if (j->slot < 0 && !take_buffer(x, j))
        return NULL;
    *to = j->slot >= 0 ? x->slot[j->slot].memory : x->buffer[j->buffer];
    j->state = EXPERT_READING;
    x->next_job++;
    return j;
}

bool experts_landed(struct experts *x, struct expert_job *j)
{
    j->complete = true;
    j->state = EXPERT_LANDED;
    if (j->user == FOR_NOBODY)
        forget(x, j);
    return j->state == EXPERT_LANDED;
}

/* The batch's first: also those that a guess has brought in, wherever the picking of reads has got to. */
struct expert_job *experts_pick_check(struct experts *x)
{
    struct expert_job *found = NULL;
    for (size_t i = 0; !found && i < x->njobs; i++)
        if (x->job[i]->state == EXPERT_LANDED)
            found = x->job[i];
    for (uint32_t i = 0; !found && i < x->p.lookahead; i++)
        if (x->guess[i].state == EXPERT_LANDED)
            found = &x->guess[i];
    if (found)
        found->state = EXPERT_CHECKING;
    return found;
}

bool experts_finish(struct experts *x, struct expert_job *j, bool ok, bool complete)
{
    j->complete = complete;
    j->state = ok ? EXPERT_READY : EXPERT_FAILED;
    if (j->user == FOR_NOBODY || (!ok && j->user == FOR_GUESS))
        forget(x, j);
    else if (ok && j->user == FOR_ROUTER)
        publish(x, j);
    return ok || j->user != FOR_ROUTER;
}

struct expert_job *experts_next(struct experts *x)
{
    struct expert_job *best = NULL;
    if (x->handed_out == x->njobs)
        return NULL;
    if (x->ascending) {
        struct expert_job *j = x->job[x->handed_out];
        return j->state == EXPERT_READY ? j : NULL;
    }
    for (size_t i = 0; i < x->njobs; i++) {
        struct expert_job *j = x->job[i];
        if (j->state == EXPERT_READY && !j->handed_out && (!best || j->arrival < best->arrival))
            best = j;
    }
    return best;
}

void experts_hand_out(struct experts *x, struct expert_job *j, k3_expert *out)
{
    j->handed_out = true;
    x->handed_out++;
    *out = (k3_expert){.number = j->number, .handle = j};
    memcpy(out->part, j->part, sizeof out->part);
}

bool experts_release(struct experts *x, struct expert_job *j)
{
    bool freed = j->buffer >= 0;
    give_buffer(x, j);
    return freed;
}
