/* Drafts: what is proposed, and when it is not worth it. */
#include "../../cmd/k3-decode/draft.c"

#include <criterion/criterion.h>

/* The next ids of a text that repeats every `period` ids must be drafted, on and
 * on: a guess that stops where the text ends would be of one id. */
Test(decode_drafts, short_periods)
{
    for (size_t period = 1; period <= 5; period++) {
        struct drafts d;
        uint32_t ids[24], out[8];
        drafts_init(&d, 1000);
        d.chance = 0.99; /* every id is worth it */
        for (size_t i = 0; i < 24; i++)
            ids[i] = 100 + (uint32_t)(i % period);
        size_t n = drafts_propose(&d, ids, 4 * period > 24 ? 24 : 4 * period, 8, out);
        cr_expect(n == 8, "period %zu: %zu ids", period, n);
        for (size_t i = 0; i < n; i++)
            cr_expect_eq(out[i], 100 + (uint32_t)(i % period), "period %zu: id %zu is %u", period, i, out[i]);
    }
}

Test(decode_drafts, nothing_to_copy)
{
    struct drafts d;
    uint32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 1}, one[] = {5}, out[8];
    drafts_init(&d, 1000);
    cr_expect_eq(drafts_propose(&d, ids, 8, 8, out), 0, "one id alike is no reason");
    cr_expect_eq(drafts_propose(&d, one, 1, 8, out), 0);
    cr_expect_eq(drafts_propose(&d, ids, 0, 8, out), 0);
    cr_expect_eq(drafts_propose(&d, (uint32_t[]){9, 9, 9, 9}, 4, 0, out), 0);
}

/* The longest suffix decides, and of several the latest. */
Test(decode_drafts, longest_then_latest)
{
    struct drafts d;
    uint32_t ids[] = {1, 2, 3, 50, 2, 3, 60, 2, 3, 70, 1, 2, 3}, out[8];
    drafts_init(&d, 1000);
    cr_assert(drafts_propose(&d, ids, 13, 8, out) > 0);
    cr_expect_eq(out[0], 50);
    cr_assert(drafts_propose(&d, ids + 1, 8, 8, out) > 0);
    cr_expect_eq(out[0], 60, "%u", out[0]);
}

/* A model that is streamed: drafts that are always wrong must stop, right ones must grow. */
Test(decode_drafts, learns_from_bytes)
{
    struct drafts d;
    uint32_t ids[16] = {0}, out[8];
    drafts_init(&d, 1000);
    for (int i = 0; i < 40; i++) {
        drafts_learn(&d, 0, 0, 1, 1000);
        drafts_learn(&d, 4, 0, 1, 1800);
    }
    size_t tries = 0;
    for (int i = 0; i < 320; i++)
        tries += drafts_propose(&d, ids, 16, 8, out) > 0;
    cr_expect(tries <= 10, "%zu tries of 320", tries);
    for (int i = 0; i < 200; i++)
        drafts_learn(&d, 1, 1, 1, 1200);
    cr_expect_eq(drafts_propose(&d, ids, 16, 8, out), 8);
    cr_expect_eq(d.accepted, 200);
}
