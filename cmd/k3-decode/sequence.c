/* SPDX-License-Identifier: Apache-2.0 */
/* A line of input: made when it is read, freed once it is written. */
#include "sequence.h"

#include <stdlib.h>
#include <string.h>

struct sequence *sequence_new(uint64_t line, k3_ids ids)
{
    struct sequence *s = malloc(sizeof *s);
    if (s)
        *s = (struct sequence){.line = line, .ids = ids, .prompt = ids.n};
    else
        k3_ids_free(&ids);
    return s;
}

int sequence_precede(struct sequence *s, const uint32_t *ids, size_t n, size_t fed, k3_err *err)
{
    int status = k3_ids_reserve(&s->ids, n, err);
    if (status || !n)
        return status;
    memmove(s->ids.id + n, s->ids.id, s->ids.n * sizeof *s->ids.id);
    memcpy(s->ids.id, ids, n * sizeof *ids);
    s->ids.n += n;
    s->prompt = s->ids.n;
    s->fed = fed;
    return 0;
}

void sequence_free(struct sequence *s)
{
    k3_ids_free(&s->ids);
    k3_bytes_free(&s->text);
    k3_state_free(s->state);
    free(s);
}
