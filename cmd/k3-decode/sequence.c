/* A line of input: made when it is read, freed once it is written. */
#include "sequence.h"

#include <stdlib.h>

struct sequence *sequence_new(uint64_t line, k3_ids ids)
{
    struct sequence *s = malloc(sizeof *s);
    if (s)
        *s = (struct sequence){.line = line, .ids = ids, .prompt = ids.n};
    else
        k3_ids_free(&ids);
    return s;
}

void sequence_free(struct sequence *s)
{
    k3_ids_free(&s->ids);
    k3_bytes_free(&s->text);
    k3_state_free(s->state);
    free(s);
}
