/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - what follows from the options once the model is known. */
#ifndef SETTINGS_H
#define SETTINGS_H

#include "k3_spec.h"
#include "options.h"

struct settings {
    const struct options *o;
    uint64_t layers;
    uint32_t stops[MAX_STOPS];   /* ids that end a sequence */
    size_t nstops;
};

/* K3_EUSAGE for options that do not fit the model; the stop ids come from options, or config and tokenizer. */
int settings_resolve(struct settings *s, const struct options *o, const k3_config *c, k3_err *err);
bool settings_stop(const struct settings *s, uint32_t id);

#endif
