/* SPDX-License-Identifier: Apache-2.0 */
/* ls and show. */
#define _GNU_SOURCE
#include "index.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static json_t *entry_json(const k3_index *ix, const k3_entry *e)
{
    json_t *o = json_pack("{s:s, s:s, s:o, s:I, s:s, s:I}", "name", e->name, "dtype", e->dtype, "shape",
                          json_shape(e->shape, e->rank), "bytes", (json_int_t)e->at.bytes, "shard",
                          k3_index_shard_name(ix, e->at.shard), "offset", (json_int_t)e->at.offset);
    if (o && e->ignored)
        json_object_set_new(o, "ignored", json_true());
    return o;
}

static void put_entry(const k3_index *ix, const k3_entry *e)
{
    put_text(e->name);
    printf("\t%s\t", e->dtype);
    put_shape(e->shape, e->rank);
    printf("\t%" PRIu64 "\t%s\t%" PRIu64 "\n", e->at.bytes, k3_index_shard_name(ix, e->at.shard), e->at.offset);
}

int index_ls(const index_opts *o, k3_err *err)
{
    k3_index *ix;
    k3_entry e;
    uint64_t found = 0;
    int status = k3_index_open(&ix, o->model, o->index_file, err);
    if (status)
        return status;
    if (o->json)
        putchar('[');
    for (uint64_t i = 0, n = k3_index_count(ix); i < n && !status; i++) {
        k3_index_entry(ix, i, &e);
        if (o->operand && !k3_name_matches(o->operand, e.name))
            continue;
        if (!o->json) {
            if (!found)
                puts("name\tdtype\tshape\tbytes\tshard\toffset");
            put_entry(ix, &e);
        } else {
            json_t *v = entry_json(ix, &e);
            char *text = v ? json_dumps(v, JSON_COMPACT) : NULL; /* json_dumpf writes character by character */
            if (!text)
                status = k3_fail(err, K3_ESYS, "out of memory for the JSON output");
            printf(found ? ",\n%s" : "\n%s", text ? text : "");
            free(text);
            json_decref(v);
        }
        if (ferror(stdout))
            status = k3_fail_write(err, "standard output");
        found++;
    }
    if (o->json && !status)
        puts(found ? "\n]" : "]");
    if (!found && !status && o->operand)
        status = k3_fail(err, K3_EDATA, "%s: no tensor matches \"%s\"", o->model, o->operand);
    k3_index_close(ix);
    return status;
}

/* ---- show ------------------------------------------------------------------- */

enum { SHOWN = 8 };

/* The first values as numbers; how many there are, 0 for a dtype whose values are not known. */
static int first_values(const k3_entry *e, const unsigned char *data, size_t have, double out[SHOWN])
{
    static const char *const known[] = {"BF16", "F16", "F32", "F64", "U8", "I8", "BOOL", NULL};
    static const size_t size[] = {2, 2, 4, 8, 1, 1, 1};
    int k = 0, n = 0;
    while (known[k] && strcmp(known[k], e->dtype))
        k++;
    for (; known[k] && n < SHOWN && (size_t)(n + 1) * size[k] <= have; n++) {
        const unsigned char *p = data + (size_t)n * size[k];
        uint16_t half;
        float f;
        memcpy(&half, p, size[k] == 2 ? 2 : 0);
        memcpy(&f, p, size[k] == 4 ? 4 : 0);
        memcpy(&out[n], p, size[k] == 8 ? 8 : 0);
        if (size[k] == 2)
            out[n] = k == 0 ? bf16_value(half) : f16_value(half);
        else if (size[k] == 4)
            out[n] = f;
        else if (size[k] == 1)
            out[n] = k == 5 ? (signed char)*p : *p;
    }
    return n;
}

static int read_first(const k3_index *ix, const k3_entry *e, unsigned char *data, size_t n, k3_err *err)
{
    const char *path = k3_index_shard_path(ix, e->at.shard);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return k3_fail_errno(err, path, "cannot open");
    int status = k3_pread_full(fd, path, data, n, e->at.offset, err);
    close(fd);
    return status;
}

/* "nan" and "inf" have no JSON form: null. */
static json_t *json_value(double x)
{
    json_t *v = json_real(x);
    return v ? v : json_null();
}

static int show(const k3_index *ix, const k3_entry *e, bool json, k3_err *err)
{
    unsigned char data[SHOWN * 8];
    double value[SHOWN];
    size_t have = e->at.bytes < sizeof data ? (size_t)e->at.bytes : sizeof data;
    int status = read_first(ix, e, data, have, err);
    if (status)
        return status;
    int n = first_values(e, data, have, value);
    bool padded = !e->ignored && e->id.tensor == K3_T_A_LOG && e->shape[0] > k3_index_config(ix)->kda_heads;
    if (json) {
        json_t *o = entry_json(ix, e), *list = json_array();
        for (int i = 0; i < n; i++)
            json_array_append_new(list, json_value(value[i]));
        json_object_set_new(o, "values", list);
        if (padded)
            json_object_set_new(o, "used", json_integer((json_int_t)k3_index_config(ix)->kda_heads));
        return put_json(o, err);
    }
    printf("name    ");
    put_text(e->name);
    printf("\ndtype   %s\nshape   ", e->dtype);
    put_shape(e->shape, e->rank);
    if (padded)
        printf("  the first %" PRIu64 " are used", k3_index_config(ix)->kda_heads);
    if (e->ignored)
        printf("\nignored not part of the text model");
    printf("\nbytes   %" PRIu64 "\nshard   %s\noffset  %" PRIu64 "\nvalues ", e->at.bytes, k3_index_shard_name(ix, e->at.shard),
           e->at.offset);
    for (int i = 0; i < n; i++)
        printf(" %.9g", value[i]);
    putchar('\n');
    return 0;
}

int index_show(const index_opts *o, k3_err *err)
{
    k3_index *ix;
    k3_entry e;
    int status = k3_index_open(&ix, o->model, o->index_file, err);
    if (status)
        return status;
    status = find_entry(ix, o->operand, &e, err);
    if (!status)
        status = show(ix, &e, o->json, err);
    k3_index_close(ix);
    return status;
}
