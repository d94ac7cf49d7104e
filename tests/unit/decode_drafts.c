/* SPDX-License-Identifier: Apache-2.0 */
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
        drafts_learn(&d, 1, 0, 0, 1, 1000);
        drafts_judged(&d, 4, 0);
        drafts_learn(&d, 1, 4, 0, 1, 1800);
    }
    size_t tries = 0;
    for (int i = 0; i < 320; i++)
        tries += drafts_propose(&d, ids, 16, 8, out) > 0;
    cr_expect(tries <= 10, "%zu tries of 320", tries);
    for (int i = 0; i < 200; i++) {
        drafts_judged(&d, 1, 1);
        drafts_learn(&d, 1, 1, 1, 1, 1200);
    }
    cr_expect_eq(drafts_propose(&d, ids, 16, 8, out), 8);
    cr_expect_eq(d.accepted, 200);
    cr_expect_float_eq(d.saved_bytes, 200 * 800 - 40 * 800, 1e-6);
    cr_expect_float_eq(d.saved_s, 200, 1e-6);
}

/* Bytes say little, seconds much, and that again and again: an id more costs as much as a pass. */
Test(decode_drafts, believes_seconds_that_repeat)
{
    struct drafts d;
    drafts_init(&d, 1000);
    d.chance = 0.9;
    drafts_learn(&d, 1, 0, 0, 1, 1000);
    for (int i = 0; i < ENOUGH; i++) {
        cr_expect(drafts_worth(&d, 4) == 4, "%d passes are too few", i);
        drafts_learn(&d, 1, 4, 0, 5, 1010);
    }
    cr_expect_eq(drafts_worth(&d, 4), 0);
    drafts_learn(&d, 1, 4, 0, 1.2, 1010);
    cr_expect_eq(drafts_worth(&d, 4), 4, "and one quick pass shows that it was load");
}

/* With company an id more is a smaller part of what a pass brings, and costs of other numbers do not count. */
Test(decode_drafts, company)
{
    struct drafts d;
    drafts_init(&d, 1000);
    d.chance = 0.5;
    drafts_learn(&d, 1, 0, 0, 1, 1000);
    drafts_learn(&d, 1, 4, 0, 1, 1400);
    cr_expect(drafts_worth(&d, 1) == 1);
    drafts_learn(&d, 8, 0, 0, 1, 1000);
    drafts_learn(&d, 8, 4, 0, 1, 1400);
    cr_expect(drafts_worth(&d, 1) == 0, "half an id for a tenth of eight");
}

/* The wait for an answer is as long as the answer can pay, and one that never comes is soon not waited for. */
Test(decode_drafts, patience)
{
    struct drafts d;
    drafts_init(&d, 1000);
    cr_expect_eq(drafts_patience(&d, 4), 0, "what a pass costs is not known");
    drafts_learn(&d, 1, 0, 0, 10, 1000);
    d.extra_bytes = 100; /* a tenth of a pass */
    d.chance = 1;
    cr_expect_float_eq(drafts_patience(&d, 4), 10 * (5 - 1 - 0.4), 1e-6);
    double waited = 0;
    for (int i = 0; i < 2000; i++) {
        double s = drafts_patience(&d, 4);
        if (s > 0) {
            waited += s;
            drafts_waited(&d, s, false);
        }
    }
    cr_expect(waited < 0.02 * 2000 * 10, "%g s of 20000", waited);
    cr_expect_float_eq(d.waited_s, waited, 1e-6);
    /* An answer that is quick again is asked for again. */
    for (int i = 0; i < 40; i++)
        drafts_waited(&d, 0.001, true);
    cr_expect(drafts_patience(&d, 4) > 30);
}
