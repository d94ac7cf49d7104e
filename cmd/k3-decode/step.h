/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - one pass for all active sequences: prompts in chunks, others one id each, or one id and a
 * draft. Company does not change a sequence's bits. */
#ifndef STEP_H
#define STEP_H

#include "draft.h"
#include "drafter.h"
#include "engine.h"
#include "output.h"
#include "record.h"
#include "rows.h"
#include "score.h"
#include "watch.h"

struct pass;

/* What passes work with and write to. */
struct step {
    struct engine *engine;
    struct output *out;
    struct sampler sampler;
    struct drafts drafts;
    struct drafter *drafter; /* NULL: drafts come from the sequence itself */
    struct scores scores;
    struct rows logits;      /* float32 [rows][vocab] */
    struct record record;
    struct watch watch;
    struct pass *pass;       /* the one at hand */
    uint64_t most;           /* ids that a sequence may have in all, where --gen is max */
};
/* Files that it writes are opened; engine and output must outlive it. */
int step_open(struct step *st, struct engine *e, struct output *out, k3_err *err);
/* After engine_prepare: the model's hooks, the trace, the cost of drafts. */
int step_attach(struct step *st, k3_err *err);
/* `waiting`: other sequences will follow. A signal ends the pass with K3_ESYS and an
 * empty *err, or lets it end where something that was asked for has to be whole: then sequences are as after any pass. */
int step_run(struct step *st, struct sequence *const *active, size_t n, bool waiting, k3_err *err);
/* Files appear: as far as the run came. One that fails does not keep the others back. */
int step_commit(struct step *st, k3_err *err);
void step_close(struct step *st);

#endif
