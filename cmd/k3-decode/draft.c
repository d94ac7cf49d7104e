/* SPDX-License-Identifier: Apache-2.0 */
/* Drafts from the sequence itself, and whether a draft is worth verifying.
 *
 * A token more in a pass costs its experts' reading and some arithmetic. Where a pass streams much of the model its
 * seconds go with its bytes, which are counted exactly: the cost of a token more is what its experts add to them, or
 * the seconds that several passes have measured if these say more. Where the model is resident, seconds alone count.
 *
 * The longest suffix that occurred before predicts what follows it; the copy
 * runs on into itself, so a sequence that repeats every 1, 2 or 3 ids drafts
 * as well as a long quotation. */
#include "draft.h"

#include <string.h>

enum { LONGEST = 8, SHORTEST = 2 };
enum { ENOUGH = 8 };               /* passes whose seconds are believed where bytes say something else */
enum { RETRY = 32, RARELY = 1024 }; /* a rare try keeps the estimates alive: one in so many, at least */
static const double forget = 0.2;  /* weight of the newest pass in a moving average */
static const double rise = 1.02;   /* of a least value in each pass that does not reach it */
static const double margin = 1.02; /* a draft must promise so much more than none */

void drafts_init(struct drafts *d, uint64_t model_bytes)
{
    *d = (struct drafts){.chance = 0.6, .together = 1, .model_bytes = (double)model_bytes, .retry = RETRY};
}

/* What one token more costs, as a share of a pass without drafts. */
static double extra_cost(const struct drafts *d)
{
    const double unknown = 0.2 / (double)d->together;
    if (d->single_bytes <= 0.1 * d->model_bytes)
        return d->single_s > 0 && d->extra_s > 0 ? d->extra_s / d->single_s : unknown;
    double bytes = d->extra_bytes > 0 ? d->extra_bytes / d->single_bytes : unknown;
    double seconds = d->measured >= ENOUGH && d->single_low > 0 ? d->extra_low / d->single_low : 0;
    return bytes > seconds ? bytes : seconds;
}

/* Length of the common suffix of ids[0..at) and ids[0..n), at most LONGEST. */
static size_t common_suffix(const uint32_t *ids, size_t at, size_t n)
{
    size_t k = 0;
    while (k < LONGEST && k < at && ids[at - 1 - k] == ids[n - 1 - k])
        k++;
    return k;
}

/* Where the continuation of the longest, then latest, earlier suffix starts; 0 if there is none. */
static size_t find_source(const uint32_t *ids, size_t n)
{
    size_t best = 0, best_len = SHORTEST - 1;
    for (size_t at = n - 1; n && at >= 1; at--) {
        size_t k = common_suffix(ids, at, n);
        if (k > best_len) {
            best_len = k;
            best = at;
            if (k == LONGEST)
                break;
        }
    }
    return best;
}

/* Ids that a pass brings if it verifies n of one sequence. */
static double expected(const struct drafts *d, size_t n)
{
    double ids = (double)d->together, p = 1;
    for (size_t i = 0; i < n; i++)
        ids += p *= d->chance;
    return ids;
}

/* Ids for the time of a pass without drafts, of a pass that verifies n, after a wait of `wait` such passes. */
static double gain(const struct drafts *d, size_t n, double wait)
{
    return expected(d, n) / (1 + extra_cost(d) * (double)n + wait);
}

/* The n up to `most` with the greatest gain; 0: none is worth it. */
static size_t best_length(const struct drafts *d, size_t most, double wait)
{
    size_t best = 0;
    double most_gain = (double)d->together * margin;
    for (size_t n = 1; n <= most; n++)
        if (gain(d, n, wait) > most_gain) {
            best = n;
            most_gain = gain(d, n, wait);
        }
    return best;
}

size_t drafts_worth(struct drafts *d, size_t n)
{
    size_t best = best_length(d, n, 0);
    return !best && n && ++d->declined % RETRY == 0 ? 1 : best;
}

size_t drafts_propose(struct drafts *d, const uint32_t *ids, size_t n, size_t most, uint32_t *out)
{
    size_t from = find_source(ids, n);
    if (!from)
        return 0;
    for (size_t i = 0; i < most; i++)
        out[i] = from + i < n ? ids[from + i] : out[from + i - n];
    return drafts_worth(d, most);
}

static void average(double *x, double now)
{
    *x = *x > 0 ? *x + forget * (now - *x) : now;
}

static void least(double *x, double now)
{
    *x = *x > 0 && now > *x * rise ? *x * rise : now;
}

double drafts_patience(struct drafts *d, size_t most)
{
    if (d->single_s <= 0)
        return 0;
    /* n verified ids make up for a wait of as many passes as they bring more than one without them. */
    size_t n = best_length(d, most, d->wait_s / d->single_s);
    if (n)
        return d->single_s * (expected(d, n) / (double)d->together - 1 - extra_cost(d) * (double)n);
    return ++d->declined % d->retry ? -1 : d->single_s;
}

void drafts_waited(struct drafts *d, double seconds, bool answered)
{
    if (answered)
        average(&d->wait_s, seconds);
    else if (d->wait_s < seconds)
        d->wait_s = seconds; /* it would have been longer */
    d->waited_s += seconds;
    d->saved_s -= seconds;
    d->retry = answered ? RETRY : d->retry < RARELY ? 2 * d->retry : RARELY;
}

void drafts_judged(struct drafts *d, size_t proposed, size_t accepted)
{
    d->proposed += proposed;
    d->accepted += accepted;
    /* Ids after the first wrong one were not tested. */
    for (size_t i = 0; i < proposed && i <= accepted; i++)
        d->chance += 0.05 * ((i < accepted) - d->chance);
}

void drafts_learn(struct drafts *d, size_t together, size_t proposed, size_t accepted, double seconds, uint64_t bytes)
{
    if (together != d->together) {
        d->single_s = d->extra_s = d->single_low = d->extra_low = d->single_bytes = d->extra_bytes = 0;
        d->measured = 0;
        d->together = together;
    }
    d->passes += proposed > 0;
    if (!proposed) {
        average(&d->single_s, seconds);
        least(&d->single_low, seconds);
        average(&d->single_bytes, (double)bytes);
        return;
    }
    if (d->single_s <= 0)
        return;
    double passes = 1 + (double)accepted / (double)together; /* that these ids would have needed */
    double extra = (seconds - d->single_s) / (double)proposed;
    average(&d->extra_s, extra > 1e-9 ? extra : 1e-9);
    extra = (seconds - d->single_low) / (double)proposed;
    least(&d->extra_low, extra > 1e-9 ? extra : 1e-9);
    d->measured++;
    extra = ((double)bytes - d->single_bytes) / (double)proposed;
    average(&d->extra_bytes, extra > 1 ? extra : 1);
    double saved = d->single_low * passes - seconds;
    d->saved_s += accepted || saved < 0 ? saved : 0;
    d->saved_bytes += d->single_bytes * passes - (double)bytes;
}
