/* SPDX-License-Identifier: Apache-2.0 */
/* ids: the special ids and their names. */
#include "tok.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int write_id(const k3_vocab *v, uint32_t id, bool json, bool first, k3_err *err)
{
    char head[64];
    size_t n;
    const char *name = k3_vocab_bytes(v, id, &n);
    const int len = snprintf(head, sizeof head, json ? "%s{\"id\": %" PRIu32 ", \"name\": " : "%s%" PRIu32 "\t",
                             !json ? "" : first ? "[" : ",\n ", id);
    int status = tok_write(head, (size_t)len, err);
    if (status)
        return status;
    if (!json) {
        status = tok_write(name, n, err);
        return status ? status : tok_write("\n", 1, err);
    }
    status = tok_write_quoted(name, n, err);
    const char *const tail = k3_vocab_is_named(v, id) ? ", \"named\": true}" : ", \"named\": false}";
    return status ? status : tok_write(tail, strlen(tail), err);
}

int tok_ids(const tok_opts *o, k3_err *err)
{
    k3_vocab *v;
    int status = k3_vocab_open(&v, o->model, 0, err);
    if (status)
        return status;
    const uint32_t first = k3_vocab_ranks(v);
    if (!o->json)
        status = tok_write("id\tname\n", 8, err);
    for (uint32_t id = first; id < k3_vocab_size(v) && !status; id++)
        status = write_id(v, id, o->json, id == first, err);
    if (!status && o->json)
        status = tok_write("]\n", 2, err);
    k3_vocab_close(v);
    return status;
}
