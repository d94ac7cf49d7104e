/* SPDX-License-Identifier: Apache-2.0 */
/* Policies over several lists: SLRU, 2Q, ARC, S3-FIFO, W-TinyLFU. */
#include "sim_policies.h"

/* where[] = RESIDENT (unless it is a ghost) | counter | IN_LIST | list */
static inline uint8_t place(int list, bool resident)
{
    return (uint8_t)((resident ? RESIDENT : 0) | IN_LIST | list);
}

static inline int list_of(const k3_sim *s, uint32_t id)
{
    return s->where[id] & LIST_MASK;
}

static inline void move(k3_sim *s, uint32_t id, int to, bool resident)
{
    sim_unlink(s, list_of(s, id), id);
    sim_push(s, to, id);
    s->where[id] = place(to, resident);
}

static inline void forget(k3_sim *s, uint32_t id)
{
    sim_unlink(s, list_of(s, id), id);
    s->where[id] = 0;
}

/* Forgets the last of a list of ghosts. */
static inline void forget_last(k3_sim *s, int list)
{
    if (s->count[list])
        forget(s, s->link[head_of(s, list)].prev);
}

static inline void enter(k3_sim *s, uint32_t id, int list)
{
    sim_push(s, list, id);
    s->where[id] = place(list, true);
}

/* The last that may leave of list a, or of b if a has none. */
static inline uint32_t last_of(const k3_sim *s, int a, int b, bool batched)
{
    uint32_t id = sim_last(s, a, batched);
    return id != head_of(s, a) ? id : sim_last(s, b, batched);
}

/* ---- SLRU: new ones on probation (0), used again protected (1) ---- */

static inline void segmented_touch(k3_sim *s, uint32_t id, int probation, int protect, uint32_t cap)
{
    move(s, id, protect, true);
    if (s->count[protect] > cap)
        move(s, s->link[head_of(s, protect)].prev, probation, true);
}

static inline void slru_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    segmented_touch(s, id, 0, 1, s->cap[0]);
}

static inline void slru_insert(k3_sim *s, uint32_t id, bool batched)
{
    if (s->count[0] + s->count[1] == s->slots)
        forget(s, last_of(s, 0, 1, batched));
    enter(s, id, 0);
}

SIM_RUN(slru)

/* ---- 2Q: in (0, a FIFO), main (1, an LRU), out (2, ghosts of in) ---- */

static inline void twoq_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    if (list_of(s, id) == 1)
        move(s, id, 1, true);
}

static inline void twoq_insert(k3_sim *s, uint32_t id, bool batched)
{
    bool ghost = s->where[id];
    if (ghost)
        forget(s, id);
    if (s->count[0] + s->count[1] == s->slots) {
        bool in = s->count[0] > s->cap[0] || !s->count[1];
        uint32_t victim = in ? last_of(s, 0, 1, batched) : last_of(s, 1, 0, batched);
        if (list_of(s, victim) == 0)
            move(s, victim, 2, false);
        else
            forget(s, victim);
        if (s->count[2] > s->cap[1])
            forget_last(s, 2);
    }
    enter(s, id, ghost ? 1 : 0);
}

SIM_RUN(twoq)

/* ---- ARC: once (0), again (1), and their ghosts (2, 3); target is the size of `once` ---- */

static inline void arc_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    move(s, id, 1, true);
}

static inline void arc_replace(k3_sim *s, bool from_ghost_again, bool batched)
{
    if (s->count[0] + s->count[1] < s->slots)
        return;
    bool once = s->count[0] && (s->count[0] > s->target || (from_ghost_again && s->count[0] == s->target));
    uint32_t victim = once ? last_of(s, 0, 1, batched) : last_of(s, 1, 0, batched);
    move(s, victim, list_of(s, victim) + 2, false);
}

static inline void arc_insert(k3_sim *s, uint32_t id, bool batched)
{
    int ghost = s->where[id] ? list_of(s, id) : 0;
    if (ghost) {
        uint32_t mine = s->count[ghost], other = s->count[5 - ghost], step = other > mine ? other / mine : 1;
        if (ghost == 2)
            s->target = s->target + step < s->slots ? s->target + step : s->slots;
        else
            s->target = s->target > step ? s->target - step : 0;
        forget(s, id);
        arc_replace(s, ghost == 3, batched);
        enter(s, id, 1);
        return;
    }
    if (s->count[0] + s->count[2] >= s->slots) {
        if (s->count[2]) {
            forget_last(s, 2);
            arc_replace(s, false, batched);
        } else {
            forget(s, last_of(s, 0, 1, batched));
        }
    } else if (s->count[0] + s->count[1] + s->count[2] + s->count[3] >= s->slots) {
        if (s->count[0] + s->count[1] + s->count[2] + s->count[3] >= 2 * s->slots)
            forget_last(s, 3);
        arc_replace(s, false, batched);
    }
    enter(s, id, 0);
}

SIM_RUN(arc)

/* ---- S3-FIFO: small (0), main (1), ghosts (2); two bits count uses ---- */

static inline uint32_t uses(const k3_sim *s, uint32_t id)
{
    return (uint32_t)(s->where[id] & BITS_MASK) >> BITS_SHIFT;
}

static inline void s3fifo_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    if (uses(s, id) < 3)
        s->where[id] = (uint8_t)(s->where[id] + (1 << BITS_SHIFT));
}

/* One step towards a free slot: the last of a list goes on, or out. */
static inline bool s3fifo_step(k3_sim *s, bool batched)
{
    bool small = s->count[0] && (s->count[0] >= s->cap[0] || !s->count[1]);
    uint32_t id = small ? last_of(s, 0, 1, batched) : last_of(s, 1, 0, batched), n = uses(s, id);
    int list = list_of(s, id);
    if (n) {
        move(s, id, 1, true);
        s->where[id] |= (uint8_t)(list == 1 ? (n - 1) << BITS_SHIFT : 0);
        return false;
    }
    if (list == 1) {
        forget(s, id);
        return true;
    }
    move(s, id, 2, false);
    if (s->count[2] > s->slots)
        forget_last(s, 2);
    return true;
}

static inline void s3fifo_insert(k3_sim *s, uint32_t id, bool batched)
{
    while (s->count[0] + s->count[1] == s->slots && !s3fifo_step(s, batched))
        ;
    bool ghost = s->where[id];
    if (ghost)
        forget(s, id);
    enter(s, id, ghost ? 1 : 0);
}

SIM_RUN(s3fifo)

/* ---- W-TinyLFU: window (0), probation (1), protected (2); counts of all ids, halved by period ---- */

static inline uint32_t frequency(const k3_sim *s, uint32_t id)
{
    uint32_t age = s->period - (s->freq[id] >> 4);
    return age < 4 ? (s->freq[id] & 15) >> age : 0;
}

static inline void count_use(k3_sim *s, uint32_t id)
{
    uint32_t f = frequency(s, id);
    s->freq[id] = s->period << 4 | (f < 15 ? f + 1 : 15);
    if (++s->accesses == 10ull * s->slots) {
        s->accesses = 0;
        s->period = (s->period + 1) & 0x0fffffff;
    }
}

static inline void wtinylfu_touch(k3_sim *s, uint32_t id, bool batched)
{
    (void)batched;
    count_use(s, id);
    if (list_of(s, id) == 0)
        move(s, id, 0, true);
    else
        segmented_touch(s, id, 1, 2, s->cap[1]);
}

/* Frees a slot: the window's last against the main part's, the more used stays. */
static inline void wtinylfu_evict(k3_sim *s, bool batched)
{
    uint32_t newcomer = sim_last(s, 0, batched), resident = last_of(s, 1, 2, batched);
    bool have_newcomer = newcomer != head_of(s, 0) && s->count[0] >= s->cap[0];
    bool have_resident = resident != head_of(s, 2);
    if (!have_newcomer && !have_resident)
        newcomer = sim_last(s, 0, batched);
    else if (have_resident && (!have_newcomer || frequency(s, newcomer) > frequency(s, resident))) {
        forget(s, resident);
        return;
    }
    forget(s, newcomer);
}

static inline void wtinylfu_insert(k3_sim *s, uint32_t id, bool batched)
{
    count_use(s, id);
    if (s->count[0] + s->count[1] + s->count[2] == s->slots)
        wtinylfu_evict(s, batched);
    enter(s, id, 0);
    if (s->count[0] > s->cap[0])
        move(s, s->link[head_of(s, 0)].prev, 1, true);
}

SIM_RUN(wtinylfu)
