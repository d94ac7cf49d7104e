/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of a way to read, fed with times: no thread, no clock. */
#include "../../cmd/k3-decode/stream/tune.h"

#include <criterion/criterion.h>

enum { DEPTH = 8, ROOM = 20, COPIES = 2 };

static struct tune make(int layers, uint32_t copies, bool streams)
{
    struct tune t;
    tune_init(&t, &(struct tune_params){.layers = layers, .depth = DEPTH, .tiles = ROOM, .copies = copies, .streams = streams});
    return t;
}

/* One pass whose layers take as long as their configuration is worth; the clock goes on. */
static void run_pass(struct tune *t, uint64_t pass, const double cost[3], double *now)
{
    tune_pass_begins(t, pass, 0, *now);
    for (int l = 0; l <= t->p.layers; l++) {
        *now += cost[tune_config(t, pass, l) - t->config];
        tune_layer_ends(t, pass, l, l < t->p.layers ? l + 1 : -1, *now);
    }
}

static uint32_t best_after(int layers, int passes, const double cost[3])
{
    struct tune t = make(layers, COPIES, true);
    double now = 100;
    for (int p = 1; p <= passes; p++)
        run_pass(&t, (uint64_t)p, cost, &now);
    return tune_best(&t)->reads;
}

Test(stream_tune, configurations_to_try)
{
    struct tune t = make(40, COPIES, true);
    cr_assert_eq(t.configs, 3);
    cr_expect(t.config[0].reads == DEPTH && t.config[0].tiles == ROOM && !t.config[0].keep);
    cr_expect(t.config[1].reads == COPIES && t.config[1].tiles == COPIES + 1 && t.config[1].keep);
    cr_expect(t.config[2].reads == 1 && t.config[2].tiles == 2 && t.config[2].keep);
    cr_expect(tune_as_planned(&t, tune_best(&t)));
}

Test(stream_tune, nothing_is_tried_where_nothing_streams)
{
    struct tune t = make(40, COPIES, false);
    cr_expect_eq(t.trials, 0);
}

Test(stream_tune, nothing_is_tried_where_the_user_gave_the_number)
{
    struct tune t = make(40, 0, true);
    cr_expect_eq(t.trials, 0);
    for (int i = 0; i < 100; i++)
        tune_read_ends(&t, 1, 1);
    cr_expect_eq(tune_best(&t)->reads, DEPTH);
}

Test(stream_tune, one_read_is_not_tried_twice)
{
    struct tune t;
    tune_init(&t, &(struct tune_params){.layers = 40, .depth = 1, .tiles = 2, .copies = 2, .streams = true});
    cr_expect_eq(t.configs, 1);
    cr_expect_eq(t.trials, 0);
}

Test(stream_tune, a_large_model_tries_every_kind_of_layer_in_one_pass)
{
    struct tune t = make(93, COPIES, true);
    int seen[3][4] = {{0}};
    cr_assert_eq(t.trials, 12);
    for (int i = 0; i < t.trials; i++) {
        cr_expect_eq(t.trial[i].pass, 0);
        cr_expect_eq(t.trial[i].layer, 4 + i, "after the first layers, one after another");
        seen[t.trial[i].config][t.trial[i].layer % 4]++;
    }
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < 4; k++)
            cr_expect_eq(seen[c][k], 1, "configuration %d, kind %d", c, k);
}

Test(stream_tune, a_small_model_tries_every_layer_in_every_configuration)
{
    for (int layers = 1; layers < 24; layers++) {
        struct tune t = make(layers, COPIES, true);
        int seen[3][24] = {{0}};
        cr_assert_eq(t.trials, 3 * (layers + 1));
        for (int i = 0; i < t.trials; i++)
            seen[t.trial[i].config][t.trial[i].layer]++;
        for (int c = 0; c < 3; c++)
            for (int l = 0; l <= layers; l++)
                cr_expect_eq(seen[c][l], 1, "%d layers, configuration %d, layer %d", layers, c, l);
    }
}

Test(stream_tune, the_first_pass_is_as_planned)
{
    struct tune t = make(93, COPIES, true);
    for (int l = -1; l <= 93; l++)
        cr_expect(tune_as_planned(&t, tune_config(&t, 1, l)), "layer %d", l);
}

Test(stream_tune, trials_come_back_every_sixteen_passes)
{
    struct tune t = make(93, COPIES, true);
    for (uint64_t p = 1; p < 100; p++)
        for (int l = 0; l <= 93; l++)
            cr_expect_eq(tune_config(&t, p, l) != tune_best(&t), p % 16 == 2 && l >= 4 && l < 16 && t.trial[l - 4].config != 0,
                         "pass %d layer %d", (int)p, l);
}

Test(stream_tune, the_fastest_wins)
{
    cr_expect_eq(best_after(93, 2, (double[]){3, 2, 1}), 1);
    cr_expect_eq(best_after(93, 2, (double[]){3, 1, 2}), COPIES);
    cr_expect_eq(best_after(93, 2, (double[]){1, 2, 3}), DEPTH);
    cr_expect_eq(best_after(93, 2, (double[]){1, 1, 1}), DEPTH, "a tie stays as planned");
}

Test(stream_tune, a_small_model_decides_after_three_passes)
{
    cr_expect_eq(best_after(5, 4, (double[]){3, 2, 1}), DEPTH, "the last trial has just ended");
    cr_expect_eq(best_after(5, 5, (double[]){3, 2, 1}), 1);
}

Test(stream_tune, a_later_trial_takes_the_choice_back)
{
    struct tune t = make(93, COPIES, true);
    double now = 0;
    for (uint64_t p = 1; p <= 17; p++)
        run_pass(&t, p, (double[]){3, 2, 1}, &now);
    cr_assert_eq(tune_best(&t)->reads, 1);
    run_pass(&t, 18, (double[]){1, 2, 3}, &now);
    cr_expect_eq(tune_best(&t)->reads, DEPTH, "times of the first trial do not count");
}

Test(stream_tune, a_configuration_without_times_is_not_chosen)
{
    struct tune t = make(93, COPIES, true);
    tune_pass_begins(&t, 2, 4, 10); /* configuration 0 */
    tune_layer_ends(&t, 2, 4, 50, 11);
    cr_expect_eq(tune_best(&t)->reads, DEPTH);
}

Test(stream_tune, copies_show_in_processor_time)
{
    struct tune t = make(93, COPIES, true);
    for (int i = 0; i < READS_IN_WINDOW - 1; i++)
        tune_read_ends(&t, 1, 1);
    cr_expect_eq(tune_best(&t)->reads, DEPTH, "the window is not full");
    tune_read_ends(&t, 1, 1);
    cr_expect(tune_best(&t)->reads == COPIES && tune_best(&t)->keep);
    cr_expect_eq(tune_config(&t, 18, 5), tune_best(&t), "nothing is tried then");
}

static void window(struct tune *t, double share)
{
    for (int i = 0; i < READS_IN_WINDOW; i++)
        tune_read_ends(t, 1, share);
}

Test(stream_tune, every_window_is_looked_at_whole)
{
    struct tune t = make(93, COPIES, true);
    window(&t, 1);
    tune_read_ends(&t, 1, 0);
    cr_expect(t.copies, "one read decides nothing");
}

Test(stream_tune, between_the_two_thresholds_nothing_changes)
{
    struct tune t = make(93, COPIES, true);
    window(&t, 0.2);
    cr_expect(!t.copies);
    window(&t, 0.3);
    cr_expect(t.copies);
    window(&t, 0.2);
    cr_expect(t.copies);
    window(&t, 0.1);
    cr_expect(!t.copies);
}

Test(stream_tune, a_trial_that_copies_interrupt_is_concluded)
{
    struct tune t = make(93, COPIES, true);
    tune_pass_begins(&t, 2, 4, 0);
    tune_layer_ends(&t, 2, 4, 5, 3); /* 3 s as planned */
    tune_layer_ends(&t, 2, 5, 6, 4); /* 1 s with copies */
    window(&t, 1);
    tune_layer_ends(&t, 2, 6, 7, 9);
    window(&t, 0);
    cr_expect_eq(tune_best(&t)->reads, COPIES);
    cr_expect_eq(t.layers[0] + t.layers[1] + t.layers[2], 0, "its times are gone");
}
