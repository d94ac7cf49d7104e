/* SPDX-License-Identifier: Apache-2.0 */
/* resume.h - --load-state, --save-state and `k3-decode state`. */
#ifndef RESUME_H
#define RESUME_H

#include "options.h"
#include "sequence.h"

/* The ids of the state file before those of the line; the fed ones count as fed. With `whole` the line has them
 * already, else K3_EDATA. */
int resume_ids(const char *path, uint64_t vocab, bool whole, struct sequence *s, k3_err *err);
/* The state itself into s->state, which has been made. */
int resume_state(const char *path, k3_fingerprint model, struct sequence *s, k3_err *err);
/* s->fed is then what the file says: some accepted drafts are fed again. */
int resume_save(const char *path, k3_fingerprint model, struct sequence *s, k3_err *err);
int resume_describe(const struct options *o, k3_err *err);

#endif
