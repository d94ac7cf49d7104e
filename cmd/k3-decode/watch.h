/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - how far the run is, for whoever watches, and what its passes took. */
#ifndef WATCH_H
#define WATCH_H

#include "engine.h"

struct watch {
    const struct engine *engine;
    double started, opened_s; /* when the run began; seconds until the first pass could */
    double pass_s;           /* seconds of all passes */
    double prompt_s;         /* of those that fed prompts */
    uint64_t prompt_bytes;   /* read in those passes, ahead of the next one too */
    uint64_t step_ids;       /* ids that the other passes brought */
    uint64_t lines;          /* of input so far */
    bool hushed;             /* the terminal shows the output: no line of progress any more */
    uint64_t out, of;        /* ids generated so far for the lines at hand, and those there may be; of 0: nobody knows */
    /* Prompts on their way. */
    uint64_t now, left;      /* their ids in the pass at hand, and those with all still to come; 0: it feeds none */
    uint64_t before, chunks; /* ids and passes before it, of the same prompts */
    double seconds;          /* that those took */
    /* The pass at hand. */
    size_t sequences, tokens;
    double began;
    struct totals then;
};
void watch_start(struct watch *w, const struct engine *e);
/* Source and workspace are open: passes can begin. */
void watch_opened(struct watch *w);
/* Of the tokens, `now` are of prompts, which have `left` to feed, these included. */
void watch_pass(struct watch *w, size_t sequences, size_t tokens, uint64_t now, uint64_t left);
void watch_layer(const struct watch *w, int layer);
/* It has brought `ids`; *seconds and *bytes that it took. */
void watch_pass_end(struct watch *w, uint64_t ids, double *seconds, uint64_t *bytes);

#endif
