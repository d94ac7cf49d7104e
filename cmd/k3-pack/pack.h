/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - the verbs of k3-pack. */
#ifndef PACK_H
#define PACK_H

#include "k3_trunk.h"

typedef struct pack_opts {
    const char *model;   /* NULL if none was given */
    const char *index;   /* NULL for MODEL/k3.index */
    const char *file;    /* the packed trunk */
    bool compare;        /* check, info: the file must be of the model */
    bool json;
    bool direct;         /* build, check: read past the page cache */
    k3_pack_opts work;
} pack_opts;

/* Each returns 0 or an error; all output is theirs. */
int pack_build(const pack_opts *o, k3_err *err);
int pack_check(const pack_opts *o, k3_err *err);
int pack_info(const pack_opts *o, k3_err *err);

/* The progress line; `arg` is a struct meter that starts as zeros but for its verb. */
struct meter {
    const char *verb;  /* "packed", "checked" */
    int tenths;        /* said so far, with -v */
};
void pack_meter(void *meter, const k3_pack_state *now);

#endif
