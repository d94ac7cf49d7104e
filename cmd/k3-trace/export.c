/* SPDX-License-Identifier: Apache-2.0 */
/* export: a trace in formats of other programs. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAIRS, CSV, ORACLE };

static const k3_opt table[] = {
    {"format", 'f', "FORMAT", "pairs: headerless int32 (layer, expert), the default;\ncsv: one line a choice; oracle: oracleGeneral",
     K3_OPT_WORD, .words = "pairs|csv|oracle"},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] =
    "usage: k3-trace export [-f FORMAT] [TRACE] >FILE\n"
    "\n"
    "Writes the choices for other programs. oracle is libCacheSim's oracleGeneral: 24 bytes a\n"
    "request, little-endian: u32 step, u64 layer * experts + expert, u32 bytes, and i64 the\n"
    "number (from 0) of the next request for the same expert, -1 if there is none.\n";

static void le32(uint8_t *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(v >> 8 * i);
}

static void le64(uint8_t *p, uint64_t v)
{
    le32(p, (uint32_t)v);
    le32(p + 4, (uint32_t)(v >> 32));
}

static void put_pairs(const k3_trace_batch *b)
{
    uint8_t buf[8];
    for (int i = 0; i < b->rows * b->k; i++) {
        le32(buf, (uint32_t)b->layer);
        le32(buf + 4, (uint32_t)b->experts[i]);
        fwrite(buf, 1, sizeof buf, stdout);
    }
}

static void put_csv(const k3_trace_batch *b)
{
    for (int i = 0; i < b->rows * b->k; i++) {
        const k3_trace_row *row = &b->row[i / b->k];
        printf("%" PRIu64 ",%u,%" PRIu64 ",%s,%d,%d,%d", b->step, row->sequence, row->position,
               k3_phase_name(row->phase), b->layer, i % b->k, b->experts[i]);
        if (b->weights)
            printf(",%.9g", (double)b->weights[i]);
        if (b->residency)
            printf(",%d", b->residency[i]);
        putchar('\n');
    }
}

/* The next use is in the future, so the whole trace is held. */
struct request {
    uint32_t step, id;
};

static int collect(k3_trace_reader *r, struct request **list, uint64_t *n, k3_err *err)
{
    const k3_trace_batch *b;
    uint32_t experts = (uint32_t)k3_trace_info(r)->shape.experts;
    uint64_t room = 0;
    int status;
    while (!(status = k3_trace_next(r, &b, err)) && b) {
        uint64_t more = (uint64_t)b->rows * (uint64_t)b->k;
        if (b->step > UINT32_MAX)
            return k3_fail(err, K3_EDATA, "%s: more steps than oracleGeneral can number", k3_trace_name(r));
        if (*n + more > room) {
            room = 2 * room > *n + more ? 2 * room : *n + more;
            struct request *p = realloc(*list, room * sizeof *p);
            if (!p)
                return k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " requests", room);
            *list = p;
        }
        for (uint64_t i = 0; i < more; i++)
            (*list)[(*n)++] =
                (struct request){(uint32_t)b->step, (uint32_t)b->layer * experts + (uint32_t)b->experts[i]};
    }
    return status;
}

static int put_oracle(k3_trace_reader *r, k3_err *err)
{
    const k3_trace_header *h = k3_trace_info(r);
    struct request *list = NULL;
    uint64_t n = 0;
    size_t ids = (size_t)h->shape.layers * (size_t)h->shape.experts;
    int64_t *last = malloc(ids * sizeof *last), *next = NULL;
    int status = last ? collect(r, &list, &n, err) : k3_fail(err, K3_ESYS, "out of memory");
    if (!status && h->expert_bytes > UINT32_MAX)
        status = k3_fail(err, K3_EDATA, "%s: experts of %" PRIu64 " bytes are too large for oracleGeneral",
                         k3_trace_name(r), h->expert_bytes);
    if (!status && !(next = malloc((n + 1) * sizeof *next)))
        status = k3_fail(err, K3_ESYS, "out of memory for %" PRIu64 " requests", n);
    for (size_t i = 0; i < ids && !status; i++)
        last[i] = -1;
    for (uint64_t i = n; i-- > 0 && !status;) {
        next[i] = last[list[i].id];
        last[list[i].id] = (int64_t)i;
    }
    for (uint64_t i = 0; i < n && !status && !ferror(stdout); i++) {
        uint8_t buf[24];
        le32(buf, list[i].step);
        le64(buf + 4, list[i].id);
        le32(buf + 12, (uint32_t)h->expert_bytes);
        le64(buf + 16, (uint64_t)next[i]);
        fwrite(buf, 1, sizeof buf, stdout);
    }
    free(list);
    free(last);
    free(next);
    return status;
}

static int put_all(k3_trace_reader *r, bool csv, k3_err *err)
{
    const k3_trace_header *h = k3_trace_info(r);
    const k3_trace_batch *b;
    int status;
    if (csv)
        printf("step,sequence,position,phase,layer,rank,expert%s%s\n", h->weights ? ",weight" : "",
               h->residency ? ",resident" : "");
    while (!(status = k3_trace_next(r, &b, err)) && b && !ferror(stdout))
        (csv ? put_csv : put_pairs)(b);
    return status;
}

int cmd_export(int argc, char **argv, k3_err *err)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    int format = PAIRS;
    k3_trace_reader *r;
    bool done;
    int status = k3_opt_parse(&args, &format, &done, err);
    if (status || done)
        return status;
    if (format != CSV && isatty(1))
        return k3_fail(err, K3_EUSAGE, "binary records are not for a terminal: redirect the output");
    if ((status = open_operand(&args, &r, err)))
        return status;
    status = format == ORACLE ? put_oracle(r, err) : put_all(r, format == CSV, err);
    k3_trace_free(r);
    return status;
}
