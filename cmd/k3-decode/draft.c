/* Drafts from the sequence itself, and whether they are worth verifying.
 *
 * A token more in a pass costs its experts' reading and some arithmetic. Where a
 * pass streams much of the model its bytes are the cost, which is exact;
 * where the model is resident its seconds are.
 *
 * The longest suffix that occurred before predicts what follows it; the copy
 * runs on into itself, so a sequence that repeats every 1, 2 or 3 ids drafts
 * as well as a long quotation. */
#include "draft.h"

#include <string.h>

enum { LONGEST = 8, SHORTEST = 2 };
static const double forget = 0.2; /* weight of the newest pass in a moving average */

void drafts_init(struct drafts *d, uint64_t model_bytes)
{
    *d = (struct drafts){.chance = 0.6, .model_bytes = (double)model_bytes};
}

/* What one token more costs, as a share of a pass of one token. */
static double extra_cost(const struct drafts *d)
{
    const double unknown = 0.2;
    if (d->single_bytes > 0.1 * d->model_bytes)
        return d->extra_bytes > 0 ? d->extra_bytes / d->single_bytes : unknown;
    return d->single_s > 0 && d->extra_s > 0 ? d->extra_s / d->single_s : unknown;
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

/* Tokens a second of a pass that verifies n ids. A pass of one costs 1; each more costs `extra` of it. */
static double gain(const struct drafts *d, size_t n, double extra)
{
    double expected = 1, p = 1;
    for (size_t i = 0; i < n; i++)
        expected += p *= d->chance;
    return expected / (1 + extra * (double)n);
}

size_t drafts_propose(struct drafts *d, const uint32_t *ids, size_t n, size_t most, uint32_t *out)
{
    size_t from = find_source(ids, n), best = 0;
    if (!from || !most)
        return 0;
    for (size_t i = 0; i < most; i++)
        out[i] = from + i < n ? ids[from + i] : out[from + i - n];
    double extra = extra_cost(d);
    for (size_t k = 1; k <= most; k++)
        if (gain(d, k, extra) > gain(d, best, extra) * (best ? 1 : 1.02))
            best = k;
    /* A rare try keeps the estimates alive. */
    if (!best && ++d->declined % 32 == 0)
        best = 1;
    return best;
}

static void average(double *x, double now)
{
    *x = *x > 0 ? *x + forget * (now - *x) : now;
}

void drafts_learn(struct drafts *d, size_t proposed, size_t accepted, double seconds, uint64_t bytes)
{
    if (!proposed) {
        average(&d->single_s, seconds);
        average(&d->single_bytes, (double)bytes);
        return;
    }
    d->proposed += proposed;
    d->accepted += accepted;
    d->passes++;
    if (d->single_s > 0) {
        double extra = (seconds - d->single_s) / (double)proposed;
        average(&d->extra_s, extra > 1e-9 ? extra : 1e-9);
        extra = ((double)bytes - d->single_bytes) / (double)proposed;
        average(&d->extra_bytes, extra > 1 ? extra : 1);
    }
    /* Ids after the first wrong one were not tested. */
    for (size_t i = 0; i < proposed && i <= accepted; i++)
        d->chance += 0.05 * ((i < accepted) - d->chance);
    double saved = d->single_bytes * (double)(accepted + 1) - (double)bytes;
    if (saved > 0)
        d->saved_bytes += (uint64_t)saved;
}
