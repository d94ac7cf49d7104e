/* SPDX-License-Identifier: Apache-2.0 */
/* Experts on their way through memory, driven by events in every order: no thread, no file. Each expert's bytes are its
 * number, so memory that is given away too early is seen as a wrong number. */
#include "../../cmd/k3-decode/stream/experts.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 3, EXPERTS = 8, TOPK = 2, ROOM = 16 };
#define LIST(...) (const uint16_t[]){__VA_ARGS__}, sizeof(uint16_t[]){__VA_ARGS__} / sizeof(uint16_t)

struct fixture {
    struct experts x;
    uint8_t *memory;
    uint64_t bytes;
};

/* Experts stand in the files in descending order. */
static uint64_t file_order(const void *arg, int layer, uint16_t number)
{
    (void)arg;
    return (uint64_t)layer * EXPERTS + (EXPERTS - number);
}

static struct fixture *start(uint32_t slots, uint32_t transit, uint32_t lookahead)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct expert_params p = {.shape = {.layers = LAYERS, .experts = EXPERTS, .topk = TOPK}, .policy = K3_POLICY_LRU, .slots = slots,
                              .transit = transit, .lookahead = lookahead, .room = ROOM, .bytes = 10, .file_order = file_order};
    k3_err err = {0};
    f->bytes = experts_memory(&p);
    f->memory = calloc(1, f->bytes);
    cr_assert_eq(experts_init(&f->x, &p, f->memory, &err), 0);
    return f;
}

static void end(struct fixture *f)
{
    experts_free(&f->x);
    free(f->memory);
    free(f);
}

static uint8_t mark(const struct expert_job *j)
{
    return (uint8_t)(16 * j->layer + j->number + 1);
}

static void arrive(struct expert_job *j, uint8_t *to)
{
    memset(to, mark(j), ROOM);
    for (int i = 0; i < K3_PARTS; i++)
        j->part[i] = to;
}

/* The next read of the batch; which expert. */
static struct expert_job *pick(struct fixture *f, uint8_t **to, int want)
{
    struct expert_job *j = experts_pick(&f->x, to);
    cr_assert_neq(j, NULL, "expert %d is not to be read", want);
    cr_assert_eq(j->number, want, "%d is read, not %d", j->number, want);
    return j;
}

static struct expert_job *pick_guess(struct fixture *f, uint8_t **to, int want)
{
    struct expert_job *j = experts_pick_guess(&f->x, to);
    cr_assert_neq(j, NULL, "guess %d is not to be read", want);
    cr_assert_eq(j->number, want, "%d is read, not %d", j->number, want);
    return j;
}

static bool read_ok(struct fixture *f, struct expert_job *j, uint8_t *to)
{
    arrive(j, to);
    return experts_finish(&f->x, j, true, true);
}

/* The same where `to` is set by the call that gives j. */
static void read_now(struct fixture *f, struct expert_job *j, uint8_t **to)
{
    cr_assert(read_ok(f, j, *to));
}

static void take(struct fixture *f, int layer, int want)
{
    struct expert_job *j = experts_next(&f->x);
    k3_expert e;
    cr_assert_neq(j, NULL, "expert %d is not there", want);
    experts_hand_out(&f->x, j, &e);
    cr_assert_eq((int)e.number, want, "%d is handed out, not %d", (int)e.number, want);
    cr_assert_eq(*e.part[0], 16 * layer + want + 1, "its bytes are those of %d", *e.part[0]);
    experts_release(&f->x, e.handle);
}

/* A batch from the router, all read as soon as it can be, and used. Reads made. */
static int batch(struct fixture *f, int layer, const uint16_t *list, size_t n)
{
    int reads = 0;
    experts_want(&f->x, layer, list, n, false);
    for (size_t used = 0; used < n; used++) {
        uint8_t *to;
        k3_expert e;
        struct expert_job *j;
        for (; (j = experts_pick(&f->x, &to)); reads++)
            cr_assert(read_ok(f, j, to));
        cr_assert_neq(j = experts_next(&f->x), NULL);
        experts_hand_out(&f->x, j, &e);
        cr_assert_eq(*e.part[0], 16 * layer + (int)e.number + 1);
        experts_release(&f->x, j);
    }
    cr_assert_eq(experts_next(&f->x), NULL, "a batch has no more");
    return reads;
}

static int used_buffers(const struct fixture *f)
{
    int n = 0;
    for (uint32_t i = 0; i < f->x.p.transit + f->x.p.lookahead; i++)
        n += f->x.buffer_used[i];
    return n;
}

Test(stream_experts, without_slots_everything_passes_through)
{
    struct fixture *f = start(0, 1, 0);
    for (int i = 0; i < 3; i++)
        cr_expect_eq(batch(f, 1, LIST(3, 5)), 2);
    cr_expect_eq(f->x.count.hits, 0);
    cr_expect_eq(f->x.count.requests, 6);
    cr_expect_eq(f->x.count.bytes, 60);
    end(f);
}

Test(stream_experts, cached_ones_are_not_read)
{
    struct fixture *f = start(4, 1, 0);
    cr_expect_eq(batch(f, 1, LIST(3, 5)), 2);
    cr_expect_eq(batch(f, 1, LIST(5, 3)), 0);
    cr_expect_eq(batch(f, 1, LIST(3, 6)), 1);
    cr_expect_eq(f->x.count.hits, 3);
    end(f);
}

Test(stream_experts, the_same_number_in_another_layer_is_another_expert)
{
    struct fixture *f = start(4, 1, 0);
    batch(f, 0, LIST(3, 5));
    cr_expect_eq(batch(f, 1, LIST(3, 5)), 2);
    cr_expect_eq(batch(f, 0, LIST(3, 5)), 0);
    end(f);
}

Test(stream_experts, reads_go_along_the_file)
{
    struct fixture *f = start(0, 4, 0);
    uint8_t *to;
    experts_want(&f->x, 0, LIST(2, 7, 4), false);
    pick(f, &to, 7);
    pick(f, &to, 4);
    pick(f, &to, 2);
    cr_expect_eq(experts_pick(&f->x, &to), NULL);
    end(f);
}

Test(stream_experts, handed_out_as_they_come)
{
    struct fixture *f = start(0, 4, 0);
    uint8_t *a, *b;
    experts_want(&f->x, 0, LIST(2, 7), false);
    struct expert_job *seven = pick(f, &a, 7), *two = pick(f, &b, 2);
    cr_expect_eq(experts_next(&f->x), NULL, "asked before any read has finished");
    read_ok(f, two, b);
    take(f, 0, 2);
    cr_expect_eq(experts_next(&f->x), NULL);
    read_ok(f, seven, a);
    take(f, 0, 7);
    end(f);
}

Test(stream_experts, what_came_first_is_handed_out_first)
{
    struct fixture *f = start(0, 4, 0);
    uint8_t *a, *b;
    experts_want(&f->x, 0, LIST(2, 7), false);
    struct expert_job *seven = pick(f, &a, 7), *two = pick(f, &b, 2);
    read_ok(f, two, b);
    read_ok(f, seven, a);
    take(f, 0, 2);
    take(f, 0, 7);
    end(f);
}

Test(stream_experts, cached_ones_come_before_any_that_is_read)
{
    struct fixture *f = start(4, 1, 0);
    uint8_t *to;
    batch(f, 1, LIST(3, 5));
    experts_want(&f->x, 1, LIST(6, 3), false);
    read_now(f, pick(f, &to, 6), &to);
    take(f, 1, 3);
    take(f, 1, 6);
    end(f);
}

Test(stream_experts, in_ascending_number_if_asked)
{
    struct fixture *f = start(0, 4, 0);
    uint8_t *a, *b;
    experts_want(&f->x, 0, LIST(7, 2), true);
    struct expert_job *two = pick(f, &a, 2), *seven = pick(f, &b, 7);
    read_ok(f, seven, b);
    cr_expect_eq(experts_next(&f->x), NULL, "7 waits for 2");
    read_ok(f, two, a);
    take(f, 0, 2);
    take(f, 0, 7);
    end(f);
}

Test(stream_experts, one_buffer_serves_a_batch_one_after_another)
{
    struct fixture *f = start(0, 1, 0);
    uint8_t *to, *other;
    experts_want(&f->x, 0, LIST(7, 2), false);
    struct expert_job *seven = pick(f, &to, 7);
    cr_expect_eq(experts_pick(&f->x, &other), NULL, "no buffer");
    read_ok(f, seven, to);
    cr_expect_eq(experts_pick(&f->x, &other), NULL, "it is in use until it is released");
    take(f, 0, 7);
    pick(f, &other, 2);
    end(f);
}

Test(stream_experts, more_experts_than_slots)
{
    struct fixture *f = start(2, 1, 0);
    const uint16_t list[] = {6, 1, 4, 3, 0};
    cr_expect_eq(batch(f, 0, list, 5), 5);
    cr_expect_eq(batch(f, 0, list, 2), 0, "the first misses are kept");
    cr_expect_eq(f->x.count.evictions, 0);
    end(f);
}

Test(stream_experts, evictions_are_counted_and_what_is_evicted_is_read_again)
{
    struct fixture *f = start(2, 1, 0);
    batch(f, 0, LIST(1, 2));
    batch(f, 0, LIST(3, 4));
    cr_expect_eq(f->x.count.evictions, 2);
    cr_expect_eq(batch(f, 0, LIST(1, 2)), 2);
    end(f);
}

Test(stream_experts, a_failed_read_ends_the_run)
{
    struct fixture *f = start(2, 1, 0);
    uint8_t *to;
    experts_want(&f->x, 0, LIST(1, 2), false);
    struct expert_job *j = pick(f, &to, 2);
    cr_expect(!experts_finish(&f->x, j, false, false));
    cr_expect_eq(experts_next(&f->x), NULL, "it is never handed out");
    cr_expect_eq(f->x.count.bytes, 0);
    end(f);
}

Test(stream_experts, a_failed_check_leaves_the_slot_empty)
{
    struct fixture *f = start(2, 1, 0);
    uint8_t *to;
    experts_want(&f->x, 0, LIST(1, 2), false);
    struct expert_job *j = pick(f, &to, 2);
    arrive(j, to);
    cr_assert(experts_landed(&f->x, j));
    cr_assert_eq(experts_pick_check(&f->x), j);
    cr_expect(!experts_finish(&f->x, j, false, true));
    cr_expect_eq(f->x.slot[j->slot].layer, -1);
    end(f);
}

Test(stream_experts, what_landed_waits_for_its_check)
{
    struct fixture *f = start(0, 2, 0);
    uint8_t *to;
    experts_want(&f->x, 0, LIST(2), false);
    struct expert_job *j = pick(f, &to, 2);
    cr_expect_eq(experts_pick_check(&f->x), NULL);
    arrive(j, to);
    cr_assert(experts_landed(&f->x, j));
    cr_expect_eq(experts_next(&f->x), NULL);
    cr_assert_eq(experts_pick_check(&f->x), j);
    cr_expect_eq(experts_pick_check(&f->x), NULL, "one thread checks it");
    cr_expect_eq(experts_next(&f->x), NULL);
    cr_assert(experts_finish(&f->x, j, true, true));
    take(f, 0, 2);
    end(f);
}

Test(stream_experts, the_batch_is_checked_before_guesses)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *a, *b;
    experts_want(&f->x, 0, LIST(2), false);
    struct expert_job *two = pick(f, &a, 2);
    struct expert_job *g = &f->x.guess[0];
    *g = (struct expert_job){.state = EXPERT_QUEUED, .user = FOR_GUESS, .layer = 1, .number = 5, .slot = -1, .buffer = -1};
    cr_assert_eq(pick_guess(f, &b, 5), g);
    experts_landed(&f->x, g);
    experts_landed(&f->x, two);
    cr_expect_eq(experts_pick_check(&f->x), two);
    cr_expect_eq(experts_pick_check(&f->x), g);
    end(f);
}

Test(stream_experts, guesses_are_read_the_likeliest_first)
{
    struct fixture *f = start(0, 1, 2);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2, 7, 4));
    pick_guess(f, &to, 2);
    pick_guess(f, &to, 7);
    cr_expect_eq(experts_pick_guess(&f->x, &to), NULL, "as many as the lookahead");
    cr_expect_eq(f->x.count.guesses.made, 2);
    end(f);
}

Test(stream_experts, cached_ones_are_not_guessed)
{
    struct fixture *f = start(4, 1, 2);
    uint8_t *to;
    batch(f, 1, LIST(3, 5));
    experts_expect(&f->x, 1, LIST(3, 6, 5));
    pick_guess(f, &to, 6);
    cr_expect_eq(experts_pick_guess(&f->x, &to), NULL);
    cr_expect_eq(f->x.count.guesses.made, 1);
    end(f);
}

Test(stream_experts, a_right_guess_that_is_read_is_used_at_once)
{
    struct fixture *f = start(4, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    read_now(f, pick_guess(f, &to, 2), &to);
    cr_expect_eq(f->x.count.bytes, 0, "nobody has asked for it");
    experts_want(&f->x, 0, LIST(2), false);
    cr_expect_eq(experts_pick(&f->x, &to), NULL, "it is not read again");
    take(f, 0, 2);
    cr_expect_eq(f->x.count.bytes, 10);
    cr_expect_eq(f->x.count.hits, 0, "to the cache it is a miss");
    cr_expect_eq(f->x.count.guesses.right, 1);
    cr_expect_eq(f->x.count.guesses.early, 1);
    cr_expect_eq(used_buffers(f), 0, "it traded its buffer with the slot");
    cr_expect_eq(batch(f, 0, LIST(2)), 0, "and is cached");
    end(f);
}

Test(stream_experts, a_right_guess_that_is_being_read_is_waited_for)
{
    struct fixture *f = start(4, 1, 1);
    uint8_t *to, *other;
    experts_expect(&f->x, 0, LIST(2));
    struct expert_job *g = pick_guess(f, &to, 2);
    experts_want(&f->x, 0, LIST(2), false);
    cr_expect_eq(experts_pick(&f->x, &other), NULL);
    cr_expect_eq(experts_next(&f->x), NULL);
    cr_assert(read_ok(f, g, to));
    take(f, 0, 2);
    cr_expect_eq(batch(f, 0, LIST(2)), 0);
    end(f);
}

Test(stream_experts, a_right_guess_that_is_being_checked_is_waited_for)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    struct expert_job *g = pick_guess(f, &to, 2);
    arrive(g, to);
    cr_assert(experts_landed(&f->x, g));
    cr_assert_eq(experts_pick_check(&f->x), g);
    experts_want(&f->x, 0, LIST(2), false);
    cr_expect_eq(experts_next(&f->x), NULL);
    cr_assert(experts_finish(&f->x, g, true, true));
    take(f, 0, 2);
    cr_expect_eq(used_buffers(f), 0);
    end(f);
}

Test(stream_experts, a_right_guess_that_has_not_begun_is_read_as_any_other)
{
    struct fixture *f = start(4, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    experts_want(&f->x, 0, LIST(2), false);
    cr_expect_eq(experts_pick_guess(&f->x, &to), NULL, "too late to guess");
    read_now(f, pick(f, &to, 2), &to);
    take(f, 0, 2);
    cr_expect_eq(f->x.count.guesses.right, 1);
    cr_expect_eq(f->x.count.guesses.early, 0);
    cr_expect_eq(f->x.count.guesses.wasted, 0);
    end(f);
}

Test(stream_experts, a_wrong_guess_that_is_read_is_wasted)
{
    struct fixture *f = start(4, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    read_now(f, pick_guess(f, &to, 2), &to);
    experts_want(&f->x, 0, LIST(3), false);
    cr_expect_eq(f->x.count.guesses.wasted, 1);
    cr_expect_eq(used_buffers(f), 0);
    pick(f, &to, 3);
    end(f);
}

Test(stream_experts, a_wrong_guess_that_is_being_read_holds_its_buffer_until_it_ends)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *to, *other;
    experts_expect(&f->x, 0, LIST(2));
    struct expert_job *g = pick_guess(f, &to, 2);
    experts_want(&f->x, 0, LIST(3), false);
    pick(f, &other, 3);
    cr_expect_neq(other, to);
    cr_expect_eq(used_buffers(f), 2);
    arrive(g, to);
    cr_expect(!experts_landed(&f->x, g), "nobody wants it checked");
    cr_expect_eq(used_buffers(f), 1);
    cr_expect_eq(f->x.count.guesses.wasted, 1);
    end(f);
}

Test(stream_experts, a_dropped_guess_whose_read_fails_is_no_failure)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    struct expert_job *g = pick_guess(f, &to, 2);
    experts_want(&f->x, 0, LIST(3), false);
    cr_expect(experts_finish(&f->x, g, false, false));
    cr_expect_eq(used_buffers(f), 0);
    cr_expect_eq(f->x.count.guesses.wasted, 0, "it did not come");
    end(f);
}

Test(stream_experts, a_guess_that_failed_is_read_again_if_it_was_right)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    cr_expect(experts_finish(&f->x, pick_guess(f, &to, 2), false, false), "no failure of the run");
    experts_want(&f->x, 0, LIST(2), false);
    read_now(f, pick(f, &to, 2), &to);
    take(f, 0, 2);
    cr_expect_eq(f->x.count.guesses.right, 0);
    end(f);
}

Test(stream_experts, a_guess_whose_check_failed_was_read_for_nothing)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    cr_expect(experts_finish(&f->x, pick_guess(f, &to, 2), false, true));
    cr_expect_eq(f->x.count.guesses.wasted, 1);
    cr_expect_eq(used_buffers(f), 0);
    end(f);
}

Test(stream_experts, a_right_guess_that_fails_later_ends_the_run)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    struct expert_job *g = pick_guess(f, &to, 2);
    experts_want(&f->x, 0, LIST(2), false);
    cr_expect(!experts_finish(&f->x, g, false, true));
    end(f);
}

Test(stream_experts, the_router_chooses_an_expert_whose_dropped_guess_is_still_being_read)
{
    struct fixture *f = start(0, 2, 1);
    uint8_t *to, *again;
    experts_expect(&f->x, 0, LIST(2));
    struct expert_job *g = pick_guess(f, &to, 2);
    experts_want(&f->x, 0, LIST(3), false);
    read_now(f, pick(f, &again, 3), &again);
    take(f, 0, 3);
    experts_want(&f->x, 0, LIST(2), false);
    read_now(f, pick(f, &again, 2), &again);
    cr_expect_neq(again, to);
    arrive(g, to);
    experts_landed(&f->x, g);
    take(f, 0, 2);
    cr_expect_eq(used_buffers(f), 0);
    end(f);
}

Test(stream_experts, a_busy_guess_keeps_its_place_when_the_next_ones_come)
{
    struct fixture *f = start(0, 1, 2);
    uint8_t *to, *other;
    experts_expect(&f->x, 0, LIST(2, 3));
    struct expert_job *g = pick_guess(f, &to, 2);
    experts_want(&f->x, 0, LIST(5), false);
    experts_expect(&f->x, 1, LIST(6, 7));
    pick_guess(f, &other, 6);
    cr_expect_eq(experts_pick_guess(&f->x, &other), NULL, "the other place is taken");
    arrive(g, to);
    experts_landed(&f->x, g);
    cr_expect_eq(g->state, EXPERT_FREE);
    end(f);
}

Test(stream_experts, a_guess_at_another_layer_is_no_guess_at_this_one)
{
    struct fixture *f = start(0, 1, 1);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2));
    read_now(f, pick_guess(f, &to, 2), &to);
    experts_want(&f->x, 1, LIST(2), false);
    pick(f, &to, 2);
    cr_expect_eq(f->x.count.guesses.right, 0);
    end(f);
}

Test(stream_experts, the_end_of_the_run_counts_what_nobody_asked_for)
{
    struct fixture *f = start(0, 1, 2);
    uint8_t *to;
    experts_expect(&f->x, 0, LIST(2, 3));
    read_now(f, pick_guess(f, &to, 2), &to);
    experts_end(&f->x);
    cr_expect_eq(f->x.count.guesses.wasted, 1);
    experts_end(&f->x);
    cr_expect_eq(f->x.count.guesses.wasted, 1, "once");
    end(f);
}

/* Guesses, right and wrong, and reads that end in any order: what is handed out is always the expert's own bytes, and the
 * cache's hits are those of a run without guesses. */
Test(stream_experts, random_orders)
{
    for (unsigned seed = 1; seed <= 200; seed++) {
        unsigned x = seed * 2654435761u, guesses = 1 + seed % 4;
        struct fixture *f = start(seed % 7, 1 + seed % 2, guesses), *plain = start(seed % 7, 1, 0);
        struct { struct expert_job *j; uint8_t *to; } open[16];
        int nopen = 0;
        for (int step = 0; step < 30; step++) {
            int layer = step % LAYERS, taken = 0;
            uint16_t want[2] = {(uint16_t)(x >> 8 & 7), (uint16_t)((x >> 8 & 7) ^ (1 + (x >> 12 & 3)))};
            experts_expect(&f->x, layer, (uint16_t[]){want[x >> 16 & 1], (uint16_t)(want[0] ^ 7)}, 2);
            for (int event = 0; taken < 2; event++) {
                struct expert_job *j;
                uint8_t *to;
                cr_assert(event < 10000, "seed %u: it is stuck", seed);
                x = x * 1664525u + 1013904223u;
                unsigned what = x >> 28, i = nopen ? (x >> 8) % (unsigned)nopen : 0;
                if (event == 6)
                    experts_want(&f->x, layer, want, 2, seed & 1);
                else if (what < 5 && nopen < 15 && ((event > 6 && (j = experts_pick(&f->x, &to))) || (j = experts_pick_guess(&f->x, &to))))
                    open[nopen].j = j, open[nopen++].to = to;
                else if (what < 10 && nopen) {
                    arrive(open[i].j, open[i].to);
                    cr_assert(experts_finish(&f->x, open[i].j, true, true));
                    open[i] = open[--nopen];
                } else if (event > 6 && (j = experts_next(&f->x))) {
                    k3_expert e;
                    experts_hand_out(&f->x, j, &e);
                    cr_assert_eq(*e.part[0], 16 * layer + (int)e.number + 1, "seed %u step %d", seed, step);
                    experts_release(&f->x, j);
                    taken++;
                }
            }
            batch(plain, layer, want, 2);
        }
        cr_expect_eq(f->x.count.hits, plain->x.count.hits, "seed %u", seed);
        cr_expect_eq(f->x.count.evictions, plain->x.count.evictions);
        cr_expect_eq(f->x.count.bytes, plain->x.count.bytes);
        end(f);
        end(plain);
    }
}
