/* draft.h - drafts from the sequence itself. */
#ifndef DRAFT_H
#define DRAFT_H

#include <stddef.h>
#include <stdint.h>

/* What drafting has cost and brought so far. */
struct drafts {
    uint64_t proposed, accepted, passes; /* passes with a draft */
    double single_s, extra_s;  /* moving averages: a pass of one token, and of each token more */
    double chance;             /* that a drafted id is accepted, moving */
    uint64_t declined;         /* times a draft did not look worth it */
    double single_bytes, extra_bytes; /* the same in bytes read */
    double model_bytes;        /* of trunk and head */
    uint64_t saved_bytes;      /* by ids that needed no pass of their own */
};
void drafts_init(struct drafts *d, uint64_t model_bytes);
/* Proposes up to `most` ids to follow ids[0..n); returns how many are worth verifying. */
size_t drafts_propose(struct drafts *d, const uint32_t *ids, size_t n, size_t most, uint32_t *out);
/* A pass took `seconds` and read `bytes`; it verified `proposed` ids of which `accepted` were right. */
void drafts_learn(struct drafts *d, size_t proposed, size_t accepted, double seconds, uint64_t bytes);

#endif
