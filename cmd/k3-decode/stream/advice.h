/* SPDX-License-Identifier: Apache-2.0 */
/* advice.h - what to suggest when a plan does not fit. */
#ifndef ADVICE_H
#define ADVICE_H

#include "plan.h"

/* Refuses a plan that does not fit: fails with K3_ESYS and a message that says what is needed, what there is, and up to
 * three single changes of the command line that fit. */
int advice_refuse(const struct plan *p, const struct plan_input *in, k3_err *err);

#endif
