/* SPDX-License-Identifier: Apache-2.0 */
/* draft.h - drafts: proposed from the sequence itself, and, whoever proposes them, verified where that pays. */
#ifndef DRAFT_H
#define DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What drafting has cost and brought so far. Costs are those of passes that feed one id of each of `together` sequences
 * and drafts; another number of sequences begins them anew. */
struct drafts {
    uint64_t proposed, accepted, passes; /* passes with a draft */
    double chance;             /* that a drafted id is accepted, moving */
    uint64_t declined;         /* times a draft did not look worth it */
    size_t together;
    /* Moving averages: a pass without drafts, and what each drafted id adds to it. */
    double single_s, extra_s, single_bytes, extra_bytes;
    double single_low, extra_low; /* the least seconds of late, which load on the machine does not raise */
    uint64_t measured;         /* passes with a draft behind extra_low */
    double model_bytes;        /* of trunk and head */
    double saved_bytes, saved_s; /* by ids that needed no pass of their own; seconds at least, and less `waited_s` */
    /* Proposals from outside. */
    double wait_s;             /* moving average of the wait for an answer */
    double waited_s;           /* in all */
    uint64_t retry;            /* one in so many that do not look worth asking is asked all the same */
};
void drafts_init(struct drafts *d, uint64_t model_bytes);

/* Proposes up to `most` ids to follow ids[0..n); returns how many are worth verifying. */
size_t drafts_propose(struct drafts *d, const uint32_t *ids, size_t n, size_t most, uint32_t *out);

/* How many of n ids that were proposed are worth verifying. */
size_t drafts_worth(struct drafts *d, size_t n);
/* Seconds that the wait for a proposal of up to `most` ids could still pay; 0 while that is not known, -1: do not ask. */
double drafts_patience(struct drafts *d, size_t most);
/* So long was waited, and whether an answer came. */
void drafts_waited(struct drafts *d, double seconds, bool answered);

/* `proposed` ids of one sequence were verified and the first `accepted` were right. */
void drafts_judged(struct drafts *d, size_t proposed, size_t accepted);
/* A pass of `together` sequences took `seconds` and read `bytes`; the drafts in it are summed over the sequences. */
void drafts_learn(struct drafts *d, size_t together, size_t proposed, size_t accepted, double seconds, uint64_t bytes);

#endif
