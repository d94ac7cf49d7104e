/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - a run: lines are read, admitted, decoded together, written in order, and retired. */
#ifndef SESSION_H
#define SESSION_H

#include "input.h"
#include "step.h"

struct session {
    const struct options *o;
    struct engine engine;
    struct step step;
    struct output out;
    struct input in;
    int bad;                     /* status of a line that could not be read; the lines before it are finished first */
    k3_err why;
    /* Lines in order of input. A line that is done and written is freed, unless the report will list it. */
    struct sequence *first, *last;
    struct sequence *unwritten;  /* the first that is not wholly written; NULL: all are */
    struct sequence *waiting;    /* the first that is not admitted; NULL: all are */
    struct sequence *active[MAX_BATCH];
    size_t nactive, nwaiting, nunwritten;
    uint64_t lines;              /* read so far */
    uint64_t gone_prompt, gone_out; /* ids of lines already freed: of prompts, and generated */
    bool saved;                  /* --save-state's file */
    /* --converse: what the lines so far have left for the next one. */
    k3_ids heard;                /* their ids and answers */
    size_t heard_fed;
    k3_state *heard_state;       /* NULL: before the first, and while a line has it */
};
/* Opens the model and every file that will be written. After an error *s is NULL or can be closed. */
int session_open(struct session **s, const struct options *o, k3_err *err);
/* Every line of the input; less of it, which is no failure, after a signal or once nobody reads the output. */
int session_run(struct session *s, k3_err *err);
/* Nobody reads standard output any more. */
bool session_unread(const struct session *s);
/* After session_run: files appear, as far as the run came. */
int session_commit(struct session *s, k3_err *err);
void session_close(struct session *s); /* NULL is fine */

#endif
