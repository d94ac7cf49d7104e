/* SPDX-License-Identifier: Apache-2.0 */
/* import: other traces of routing to .k3t. */
#define _GNU_SOURCE
#include "import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: k3-trace import [-o FILE] [-f FORMAT] [-m MODEL | --shape L,F,E,K] [--expert-bytes SIZE] [-i] [FILE]\n"
    "\n"
    "Makes a trace of another program's record of routing.\n";

enum { PAIRS, CSV, ORACLE }; /* --format */

struct import {
    const char *out, *model;
    int format;
    k3_trace_header header;
    bool incremental;
    FILE *from;
    struct steps steps;
};

static int32_t le32(const uint8_t *p)
{
    return (int32_t)((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}

/* Reads records of `size` bytes until the end; *more = false there. */
static int next_record(struct import *im, uint8_t *buf, size_t size, uint64_t *offset, bool *more, k3_err *err)
{
    errno = 0;
    size_t got = fread(buf, 1, size, im->from);
    *more = got == size;
    if (*more) {
        *offset += size;
        return 0;
    }
    if (ferror(im->from))
        return k3_fail_errno(err, im->steps.name, "cannot read");
    if (got)
        return k3_fail_at(err, K3_EDATA, im->steps.name, NULL, (int64_t)*offset,
                          "the file is cut off: the last record has %zu of %zu bytes", got, size);
    return *offset ? 0 : k3_fail(err, K3_EDATA, "%s: the file is empty, not a trace", im->steps.name);
}

/* The layers of a step ascend, so a lower one starts the next step. */
static int add_choice(struct steps *s, int layer, int expert, bool new_step, uint64_t offset, k3_err *err)
{
    const struct step_choices *t = &s->now;
    if (t->layers && (new_step || layer < t->layer[t->layers - 1].layer)) {
        int status = steps_end(s, err);
        if (status)
            return status;
    }
    return steps_add(s, layer, expert, offset, err);
}

static int read_pairs(struct import *im, k3_err *err)
{
    uint8_t buf[8];
    uint64_t offset = 0;
    bool more;
    int status;
    while (!(status = next_record(im, buf, sizeof buf, &offset, &more, err)) && more) {
        if (offset == 8 && !memcmp(buf, "\211K3T\r\n\032\n", 8))
            return k3_fail(err, K3_EDATA, "%s: is a .k3t trace already", im->steps.name);
        if ((status = add_choice(&im->steps, le32(buf), le32(buf + 4), false, offset - 8, err)))
            return status;
    }
    return status;
}

static int read_oracle(struct import *im, k3_err *err)
{
    const k3_shape *s = &im->header.shape;
    uint8_t buf[24];
    uint64_t offset = 0;
    uint32_t time = 0;
    int64_t farthest = -1, at = -1; /* the last request that a request names as its expert's next, and who names it */
    bool more;
    int status;
    while (!(status = next_record(im, buf, sizeof buf, &offset, &more, err)) && more) {
        uint64_t id = (uint32_t)le32(buf + 4) | (uint64_t)(uint32_t)le32(buf + 8) << 32;
        if (id >= (uint64_t)s->layers * (uint64_t)s->experts)
            return k3_fail_at(err, K3_EDATA, im->steps.name, NULL, (int64_t)offset - 20,
                              "object %" PRIu64 " is no layer * %d + expert of %d layers; see --shape", id,
                              s->experts, s->layers);
        bool new_step = offset > 24 && (uint32_t)le32(buf) != time;
        time = (uint32_t)le32(buf);
        int64_t next = (int64_t)((uint32_t)le32(buf + 16) | (uint64_t)(uint32_t)le32(buf + 20) << 32);
        if (next != INT64_MAX && next > farthest) {
            farthest = next;
            at = (int64_t)(offset / 24) - 1;
        }
        if ((status = add_choice(&im->steps, (int)(id / (uint64_t)s->experts), (int)(id % (uint64_t)s->experts),
                                 new_step, offset - 24, err)))
            return status;
    }
    if (!status && farthest >= (int64_t)(offset / 24))
        return k3_fail_at(err, K3_EDATA, im->steps.name, NULL, at * 24 + 16,
                          "the file is cut off: request %" PRId64 " comes again as request %" PRId64
                          ", but there are only %" PRIu64,
                          at, farthest, offset / 24);
    return status;
}

static int read_csv(struct import *im, k3_err *err)
{
    return csv_read(im->from, &im->steps, err);
}


static void tell(const struct import *im)
{
    const struct steps *s = &im->steps;
    uint32_t layers = (uint32_t)(s->shape.layers - s->shape.first);
    if (s->before.layers < s->layers_seen)
        k3_note("%s: the last step has %u of %u layers", s->name, s->before.layers, s->layers_seen);
    if (s->layers_seen < layers)
        k3_note("%s: the steps have %u of %u layers", s->name, s->layers_seen, layers);
    if (s->repeats && !im->incremental)
        k3_note("%s: re-prefilled: %" PRIu64 " of %" PRIu64 " steps run the whole text again for one new position "
                "(%" PRIu64 " positions in all); --incremental keeps the true decode steps",
                s->name, s->repeats, s->count, s->rows_in);
    else if (s->repeats)
        k3_note("%s: re-prefilled: kept %" PRIu64 " of %" PRIu64 " positions", s->name, s->rows_out, s->rows_in);
}

static int convert(struct import *im, k3_err *err)
{
    struct steps *s = &im->steps;
    int (*const read)(struct import *, k3_err *) = im->format == CSV      ? read_csv
                                                   : im->format == ORACLE ? read_oracle
                                                                                   : read_pairs;
    int status = create_output(im->out, &im->header, &s->w, err);
    if (!status)
        status = read(im, err);
    if (!status)
        status = steps_end(s, err);
    if (!status && im->incremental && !s->repeats)
        status = k3_fail(err, K3_EDATA,
                         "%s: not re-prefilled: no step repeats the one before and adds a position; import it "
                         "without --incremental",
                         s->name);
    if (!status)
        status = k3_trace_close(&s->w, err);
    k3_trace_abort(&s->w);
    if (!status)
        tell(im);
    return status;
}

static int run(struct import *im, const k3_args *args, k3_err *err)
{
    const char *path = args->noperands ? args->operands[0] : "-";
    if (args->noperands > 1)
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many; a single file is read", args->operands[1]);
    if (!args->noperands && isatty(0))
        return k3_fail(err, K3_EUSAGE, "which file: name it, or - for standard input");
    if (im->incremental && im->format != PAIRS)
        return k3_fail(err, K3_EUSAGE, "--incremental goes with --format pairs only");
    if (im->model && (k3_opt_given(args, "shape") || k3_opt_given(args, "expert-bytes")))
        return k3_fail(err, K3_EUSAGE, "--model says what --shape and --expert-bytes would say");
    int status = im->model ? model_header(im->model, &im->header, NULL, err) : 0;
    if (status)
        return status;
    bool std = !strcmp(path, "-");
    im->steps.name = std ? "standard input" : path;
    im->steps.shape = im->header.shape;
    im->steps.incremental = im->incremental;
    const char *base = strrchr(path, '/');
    snprintf(im->header.source, sizeof im->header.source, "k3-trace import %s%.60s",
             im->incremental ? "--incremental " : "",
             std    ? "-"
             : base ? base + 1
                    : path);
    for (char *p = im->header.source; *p; p++)
        if ((unsigned char)*p < 32 || *p == 127)
            *p = '?';
    if ((status = k3_trace_check_header(&im->header, err)))
        return status;
    im->from = std ? stdin : fopen(path, "rbe");
    if (!im->from)
        return k3_fail_errno(err, path, "cannot open");
    status = convert(im, err);
    if (!std)
        fclose(im->from);
    steps_free(&im->steps);
    return status;
}

static int take_shape(void *im, const char *value, k3_err *err)
{
    return parse_shape(value, &((struct import *)im)->header.shape, err);
}

#define AT(field) offsetof(struct import, field)
static const k3_opt table[] = {
    {"output", 'o', "FILE", "where to write (default: standard output)", K3_OPT_TEXT, AT(out)},
    {"format", 'f', "FORMAT",
     "pairs: headerless int32 (layer, expert), the default;\ncsv: as k3-trace export writes it; oracle: oracleGeneral",
     K3_OPT_WORD, AT(format), .words = "pairs|csv|oracle"},
    {"model", 'm', "MODEL", "the checkpoint whose routing it is, instead of --shape and\n--expert-bytes", K3_OPT_TEXT, AT(model)},
    {"shape", 0, "L,F,E,K", "layers, first layer with experts, experts, experts a\nposition uses (default: 93,1,896,16)",
     K3_OPT_CALL, .take = take_shape},
    {"expert-bytes", 0, "SIZE", "of one expert (default: 17547264)", K3_OPT_SIZE, AT(header.expert_bytes)},
    {"incremental", 'i', NULL,
     "pairs: of steps that run the whole text again, keep the\nnew position only: the true decode steps", K3_OPT_FLAG,
     AT(incremental)},
    K3_COMMON_OPTS,
    {0},
};

int cmd_import(int argc, char **argv, k3_err *err)
{
    struct import im = {.out = "-",
                        .header = {.shape = K3_SHAPE_DEFAULT, .expert_bytes = K3_EXPERT_BYTES_DEFAULT, .policy = -1}};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    bool done;
    int status = k3_opt_parse(&args, &im, &done, err);
    return status || done ? status : run(&im, &args, err);
}
