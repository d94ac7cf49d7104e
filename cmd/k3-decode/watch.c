/* SPDX-License-Identifier: Apache-2.0 */
/* The line on the terminal, the lines of -v, and seconds and bytes of the passes. */
#include "watch.h"

#include <inttypes.h>

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

void watch_start(struct watch *w, const struct engine *e)
{
    *w = (struct watch){.engine = e, .started = k3_now()};
}

void watch_opened(struct watch *w)
{
    if (!w->opened_s)
        w->opened_s = k3_now() - w->started;
}

void watch_pass(struct watch *w, size_t sequences, size_t tokens, uint64_t now, uint64_t left)
{
    w->sequences = sequences;
    w->tokens = tokens;
    w->now = now;
    w->left = left;
    if (!now) {
        w->before = w->chunks = 0;
        w->seconds = 0;
    }
    w->began = k3_now();
    engine_totals(w->engine, &w->then);
}

/* "id 19 of 60, 0.52 s/token, 0:21 left". */
static void show_ids(const struct watch *w, int layer)
{
    char of[32] = "", pace[80] = "", lines[40] = "";
    double seconds = w->step_ids ? (w->pass_s - w->prompt_s) / (double)w->step_ids : 0;
    uint64_t left = w->of > w->out ? (uint64_t)(seconds * (double)(w->of - w->out) + 0.5) : 0;
    if (w->of)
        snprintf(of, sizeof of, " of %" PRIu64, w->of);
    if (w->step_ids && w->of)
        snprintf(pace, sizeof pace, ", %.2f s/token, %" PRIu64 ":%02" PRIu64 " left", seconds, left / 60, left % 60);
    else if (w->step_ids)
        snprintf(pace, sizeof pace, ", %.2f s/token", seconds);
    if (w->sequences > 1)
        snprintf(lines, sizeof lines, ", %zu lines", w->sequences);
    k3_progress(false, "%s: id %" PRIu64 "%s%s, layer %d of %" PRIu64 "%s", k3_prog, w->out + 1, of, pace, layer + 1,
                w->engine->set.layers, lines);
}

void watch_layer(const struct watch *w, int layer)
{
    uint64_t layers = w->engine->set.layers;
    if (w->hushed && k3_progress_mode == K3_PROGRESS_AUTO)
        return;
    if (!w->now) {
        show_ids(w, layer);
        return;
    }
    double done = (double)w->before + (double)w->now * (layer + 1) / (double)layers;
    /* As fast as so far: attention to a long past makes it somewhat more. */
    uint64_t left = (uint64_t)((w->seconds + k3_now() - w->began) / done * ((double)(w->before + w->left) - done) + 0.5);
    k3_progress(false, "%s: prompt, chunk %" PRIu64 " of %" PRIu64 " (%zu tokens), layer %d of %" PRIu64 ", %" PRIu64 ":%02" PRIu64 " left",
                k3_prog, w->chunks + 1, w->chunks + (w->left + w->now - 1) / w->now, w->tokens, layer + 1, layers, left / 60, left % 60);
}

static void say_pass(const struct watch *w, const struct totals *now, double seconds)
{
    const struct totals *then = &w->then;
    char a[24];
    if (k3_verbosity < 1)
        return;
    k3_note("pass %" PRIu64 ": %zu token%s of %zu line%s in %.3f s, read %s, waited for trunk %.3f s, for experts %.3f s, hits %" PRIu64
            " of %" PRIu64,
            now->traffic.passes, w->tokens, plural(w->tokens), w->sequences, plural(w->sequences), seconds,
            k3_fmt_bytes(a, totals_bytes(now) - totals_bytes(then)), now->wait_trunk - then->wait_trunk,
            now->wait_experts - then->wait_experts, now->traffic.hits - then->traffic.hits,
            now->traffic.requests - then->traffic.requests);
}

void watch_pass_end(struct watch *w, uint64_t ids, double *seconds, uint64_t *bytes)
{
    struct totals now;
    engine_totals(w->engine, &now);
    *seconds = k3_now() - w->began;
    *bytes = totals_bytes(&now) - totals_bytes(&w->then);
    w->pass_s += *seconds;
    if (w->now) {
        w->prompt_s += *seconds;
        w->prompt_bytes += *bytes;
    } else {
        w->step_ids += ids;
    }
    w->seconds += *seconds;
    w->before += w->now;
    w->chunks++;
    say_pass(w, &now, *seconds);
}
