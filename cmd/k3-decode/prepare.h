/* SPDX-License-Identifier: Apache-2.0 */
/* prepare.h - from the command line to what the weight source takes. */
#ifndef PREPARE_H
#define PREPARE_H

#include "settings.h"
#include "stream/stream.h"

struct stream_place prepare_place(const struct options *o);
struct limits prepare_limits(const struct settings *set);
/* --plan: prints it and returns 0, or K3_EDATA if it does not fit. */
int print_plan(const struct options *o, k3_err *err);

#endif
