/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of ids on standard output, in the form that was asked for. */
#include "tok.h"

#include <inttypes.h>
#include <string.h>

static int write_words(tok_out *w, const k3_ids *ids, k3_err *err)
{
    const char *const gap = w->o->json ? ", " : " ";
    const size_t gap_size = strlen(gap);
    w->text.n = 0;
    int status = k3_bytes_reserve(&w->text, ids->n * 12, err);
    if (status)
        return status;
    char *p = w->text.data;
    for (size_t i = 0; i < ids->n; i++) {
        if (w->count + i) {
            memcpy(p, gap, gap_size);
            p += gap_size;
        }
        p += k3_id_format(p, ids->id[i]);
    }
    return tok_write(w->text.data, (size_t)(p - w->text.data), err);
}

static int write_binary(k3_ids *ids, k3_err *err)
{
    for (size_t i = 0; i < ids->n; i++) {
        const uint32_t id = ids->id[i];
        const uint8_t word[4] = {(uint8_t)id, (uint8_t)(id >> 8), (uint8_t)(id >> 16), (uint8_t)(id >> 24)};
        memcpy(ids->id + i, word, 4);
    }
    return tok_write(ids->id, ids->n * 4, err);
}

int tok_out_begin(tok_out *w, k3_err *err)
{
    w->open = true;
    w->count = 0;
    return w->o->json ? tok_write("[", 1, err) : 0;
}

int tok_out_ids(tok_out *w, k3_ids *ids, k3_err *err)
{
    int status = 0;
    if (ids->n && !w->o->count && !w->o->pieces)
        status = w->o->binary ? write_binary(ids, err) : write_words(w, ids, err);
    w->count += ids->n;
    ids->n = 0;
    return status;
}

int tok_out_end(tok_out *w, k3_err *err)
{
    char total[24];
    w->open = false;
    if (w->o->binary)
        return 0;
    if (!w->o->count)
        return w->o->json ? tok_write("]\n", 2, err) : tok_write("\n", 1, err);
    const int n = snprintf(total, sizeof total, "%" PRIu64 "\n", w->count);
    return tok_write(total, (size_t)n, err);
}
