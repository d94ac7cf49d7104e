/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors of a shard cover its data exactly: no hole, no overlap, no name twice. */
#include "store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const struct dtype k3_dtype_table[] = {
    {"BOOL", 8},    {"U8", 8},      {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16}, {"U16", 16},   {"F16", 16},    {"BF16", 16},   {"I32", 32},    {"U32", 32},
    {"F32", 32},    {"C64", 64},    {"F64", 64},    {"I64", 64},    {"U64", 64},    {"F4", 4},      {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {NULL, 0},
};

int k3_dtype_find(const char *name)
{
    for (int i = 0; k3_dtype_table[i].name; i++)
        if (!strcmp(k3_dtype_table[i].name, name))
            return i;
    return -1;
}

const char *k3_record_name(const struct header *h, const struct record *r, char *buf)
{
    if (r->ignored)
        return h->ignored[r->expert].name;
    if (r->tensor < 0)
        return k3_part_name(buf, r->layer, r->expert, (k3_part_id)r->part);
    return k3_tensor_name(buf, r->layer, (k3_tensor_id)r->tensor);
}

static int by_offset(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

struct named {
    const char *name;
    uint32_t at;
};

static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int d = strcmp(x->name, y->name);
    return d ? d : (x->at > y->at) - (x->at < y->at);
}

/* Offsets that clash may be one name used twice; that says it better. True if so. */
static bool report_twice(const struct header *h, const char *file, struct problems *p)
{
    char(*buf)[K3_NAME_MAX] = malloc(h->n * sizeof *buf);
    struct named *list = malloc(h->n * sizeof *list);
    bool found = false, room = buf && list;
    for (size_t i = 0; room && i < h->n; i++)
        list[i] = (struct named){k3_record_name(h, &h->records[i], buf[i]), h->records[i].at};
    if (room)
        qsort(list, h->n, sizeof *list, by_name);
    for (size_t i = 1; room && i < h->n && !found; i++)
        if ((found = !strcmp(list[i - 1].name, list[i].name)))
            k3_problem(p, file, list[i].name, list[i].at, "is there twice; first at byte %" PRIu32, list[i - 1].at);
    free(buf);
    free(list);
    return found;
}

void k3_header_cover(struct header *h, const char *file, uint64_t header, uint64_t data, struct problems *p)
{
    char a[K3_NAME_MAX], b[K3_NAME_MAX];
    uint64_t at = 0;
    bool sorted = true;
    for (size_t i = 1; i < h->n && sorted; i++)
        sorted = by_offset(&h->records[i - 1], &h->records[i]) <= 0;
    if (!sorted)
        qsort(h->records, h->n, sizeof *h->records, by_offset);
    for (size_t i = 0; i < h->n; at = h->records[i++].end) {
        const struct record *r = &h->records[i];
        const char *name = k3_record_name(h, r, a);
        if (r->begin == at)
            continue;
        if (report_twice(h, file, p))
            return;
        if (r->begin > at)
            k3_problem(p, file, name, r->at,
                    "begins at %" PRIu64 " of the data, but what is before it ends at %" PRIu64 ": a hole", r->begin, at);
        else
            k3_problem(p, file, name, r->at, "begins at %" PRIu64 " of the data inside \"%.160s\", which ends at %" PRIu64,
                    r->begin, k3_record_name(h, r - 1, b), at);
        return;
    }
    if (at < data)
        k3_problem(p, file, NULL, (int64_t)(header + at), "%" PRIu64 " bytes follow the last tensor", data - at);
    else if (at > data)
        k3_problem(p, file, k3_record_name(h, &h->records[h->n - 1], a), (int64_t)(header + data),
                "ends at %" PRIu64 " of the data, but the file holds %" PRIu64 " of it: %" PRIu64 " bytes short", at, data,
                at - data);
}
