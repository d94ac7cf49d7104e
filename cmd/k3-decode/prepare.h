/* prepare.h - from the machine and the model to a plan. */
#ifndef PREPARE_H
#define PREPARE_H

#include "plan.h"
#include "settings.h"

/* The trunk file to use, in buf if need be, or NULL for the shards. */
const char *prepare_trunk(const struct options *o, char buf[4096]);
/* Looks at the machine and plans for a demand. */
int prepare_plan(struct plan *p, const struct settings *set, const k3_index *ix, const char *trunk, const struct demand *d,
                 k3_err *err);
/* --plan: prints it and returns 0, or K3_EDATA if it does not fit. */
int print_plan(const struct options *o, k3_err *err);

#endif
