/* SPDX-License-Identifier: Apache-2.0 */
/* Options against the model: layers and stop ids. */
#include "settings.h"
#include "k3_text.h"

#include <inttypes.h>
#include <string.h>

static int given_stops(struct settings *s, const k3_config *c, k3_err *err)
{
    const struct options *o = s->o;
    for (size_t i = 0; i < o->nstops; i++)
        if (o->stops[i] >= c->vocab)
            return k3_fail(err, K3_EUSAGE, "--stop-id: %" PRIu32 " is outside the vocabulary of %" PRIu64, o->stops[i],
                           c->vocab);
    memcpy(s->stops, o->stops, o->nstops * sizeof *s->stops);
    s->nstops = o->nstops;
    return 0;
}

/* The end ids of config and tokenizer. */
static int model_stops(struct settings *s, const k3_config *c, k3_err *err)
{
    size_t more = 0;
    memcpy(s->stops, c->eos, (size_t)c->neos * sizeof *s->stops);
    s->nstops = (size_t)c->neos;
    int status = k3_vocab_eos(s->o->model, s->stops + s->nstops, MAX_STOPS - s->nstops, &more, err);
    s->nstops += more;
    return status;
}

int settings_resolve(struct settings *s, const struct options *o, const k3_config *c, k3_err *err)
{
    *s = (struct settings){.o = o, .layers = o->layers ? o->layers : c->layers};
    if (s->layers > c->layers)
        return k3_fail(err, K3_EUSAGE, "--layers: %" PRIu64 ", the model has %" PRIu64, s->layers, c->layers);
    return o->stops_given ? given_stops(s, c, err) : model_stops(s, c, err);
}

bool settings_stop(const struct settings *s, uint32_t id)
{
    for (size_t i = 0; i < s->nstops; i++)
        if (s->stops[i] == id)
            return true;
    return false;
}
