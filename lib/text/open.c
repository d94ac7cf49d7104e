/* SPDX-License-Identifier: Apache-2.0 */
/* A vocabulary from its folder: ranks, special names, and the tables that encoding needs. */
#include "text.h"

#include <stdlib.h>

int k3_vocab_open(k3_vocab **vocab, const char *dir, int flags, k3_err *err)
{
    *vocab = NULL;
    k3_vocab *v = calloc(1, sizeof *v);
    if (!v)
        return k3_fail(err, K3_ESYS, "out of memory");
    int status = k3_vocab_read_ranks(v, dir, err);
    if (!status)
        status = k3_vocab_read_specials(v, dir, err);
    if (!status && (flags & K3_VOCAB_ENCODE))
        status = k3_vocab_index(v, dir, err);
    if (status) {
        k3_vocab_close(v);
        return status;
    }
    *vocab = v;
    return 0;
}

void k3_vocab_close(k3_vocab *v)
{
    if (!v)
        return;
    free(v->offset);
    free(v->bytes);
    free(v->pair);
    free(v->slot);
    free(v->special_start);
    free(v);
}
