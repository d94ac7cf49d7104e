/* SPDX-License-Identifier: Apache-2.0 */
/* cut: some steps, layers, phases or sequences of a trace. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: k3-trace cut [-o FILE] [-s A-B] [-l A-B] [-p PHASES] [--sequence A-B] [--salvage] [TRACE]\n"
    "\n"
    "Copies what is inside every range given.\n";

struct range {
    uint64_t from, to;
};

struct cut {
    const char *out;
    struct range steps, layers, sequences;
    bool phase[K3_PHASE_COUNT], phases, salvage;
    /* rows of the current batch that stay */
    k3_trace_row *row;
    uint16_t *experts;
    float *weights;
    uint8_t *residency;
    size_t row_room, choice_room;
};

static int take_phases(void *cut, const char *list, k3_err *err)
{
    struct cut *c = cut;
    char item[32];
    while (k3_opt_word(&list, ',', item, sizeof item)) {
        int phase = k3_phase(item);
        if (phase < 0)
            return k3_fail(err, K3_EUSAGE, "--phase: \"%s\" is none of prefill, decode and draft", item);
        c->phase[phase] = c->phases = true;
    }
    return 0;
}

static int take_steps(void *cut, const char *value, k3_err *err)
{
    struct range *r = &((struct cut *)cut)->steps;
    return parse_range(value, "--steps", &r->from, &r->to, err);
}

static int take_layers(void *cut, const char *value, k3_err *err)
{
    struct range *r = &((struct cut *)cut)->layers;
    return parse_range(value, "--layers", &r->from, &r->to, err);
}

static int take_sequences(void *cut, const char *value, k3_err *err)
{
    struct range *r = &((struct cut *)cut)->sequences;
    return parse_range(value, "--sequence", &r->from, &r->to, err);
}

static const k3_opt table[] = {
    {"output", 'o', "FILE", "where to write (default: standard output)", K3_OPT_TEXT, offsetof(struct cut, out)},
    {"steps", 's', "A-B", "only steps A to B, from 0; A- goes to the end", K3_OPT_CALL, .take = take_steps},
    {"layers", 'l', "A-B", "only layers A to B", K3_OPT_CALL, .take = take_layers},
    {"phase", 'p', "LIST", "only positions in these phases: prefill, decode, draft", K3_OPT_CALL,
     .words = "prefill|decode|draft", .take = take_phases},
    {"sequence", 0, "A-B", "only positions of sequences A to B", K3_OPT_CALL, .take = take_sequences},
    {"salvage", 0, NULL, "take a trace that was cut off, up to its last whole frame", K3_OPT_FLAG, offsetof(struct cut, salvage)},
    K3_COMMON_OPTS,
    {0},
};

static bool inside(const struct range *r, uint64_t v)
{
    return v >= r->from && v <= r->to;
}

static int reserve(struct cut *c, const k3_trace_batch *b, k3_err *err)
{
    size_t rows = (size_t)b->rows, n = rows * (size_t)b->k;
    if (rows > c->row_room) {
        free(c->row);
        c->row = malloc(rows * sizeof *c->row);
        c->row_room = c->row ? rows : 0;
    }
    if (n > c->choice_room) {
        free(c->experts);
        free(c->weights);
        free(c->residency);
        c->experts = malloc(n * sizeof *c->experts);
        c->weights = malloc(n * sizeof *c->weights);
        c->residency = malloc(n);
        c->choice_room = c->experts && c->weights && c->residency ? n : 0;
    }
    if (rows > c->row_room || n > c->choice_room)
        return k3_fail(err, K3_ESYS, "out of memory for a step of %d positions", b->rows);
    return 0;
}

/* Reduces the batch to the rows that stay. */
static int keep_rows(struct cut *c, const k3_trace_batch *b, k3_trace_batch *out, k3_err *err)
{
    int status = reserve(c, b, err), n = 0;
    size_t k = (size_t)b->k;
    for (int r = 0; r < b->rows && !status; r++) {
        if ((c->phases && !c->phase[b->row[r].phase]) || !inside(&c->sequences, b->row[r].sequence))
            continue;
        size_t from = (size_t)r * k, to = (size_t)n * k;
        c->row[n++] = b->row[r];
        memcpy(c->experts + to, b->experts + from, k * sizeof *c->experts);
        if (b->weights)
            memcpy(c->weights + to, b->weights + from, k * sizeof *c->weights);
        if (b->residency)
            memcpy(c->residency + to, b->residency + from, k);
    }
    *out = *b;
    out->rows = n;
    out->row = c->row;
    out->experts = c->experts;
    out->weights = b->weights ? c->weights : NULL;
    out->residency = b->residency ? c->residency : NULL;
    return status;
}

static int copy(struct cut *c, k3_trace_reader *r, k3_trace_writer *w, k3_err *err)
{
    const k3_trace_batch *b;
    bool begun = false;
    uint64_t step = 0;
    int status;
    while (!(status = k3_trace_next(r, &b, err)) && b) {
        k3_trace_batch kept;
        if (!inside(&c->steps, b->step) || !inside(&c->layers, (uint64_t)b->layer))
            continue;
        if ((status = keep_rows(c, b, &kept, err)))
            break;
        if (!kept.rows)
            continue;
        kept.new_step = !begun || b->step != step;
        begun = true;
        step = b->step;
        if ((status = copy_batch(w, &kept, err)))
            break;
    }
    return status;
}

static int run(struct cut *c, const k3_args *args, k3_err *err)
{
    k3_trace_reader *r;
    k3_trace_writer *w = NULL;
    int status = open_operand(args, &r, err);
    if (status)
        return status;
    k3_trace_header h = *k3_trace_info(r);
    bool whole = !c->phases && c->steps.from == 0 && c->layers.from == 0 && c->sequences.from == 0 &&
                 c->steps.to == UINT64_MAX && c->layers.to == UINT64_MAX && c->sequences.to == UINT64_MAX;
    if (!whole)
        h.policy = -1; /* the cache saw what is cut away */
    if (c->salvage)
        k3_trace_salvage(r);
    status = create_output(c->out, &h, &w, err);
    if (!status && !c->salvage)
        status = k3_trace_seek(r, c->steps.from, err);
    if (!status)
        status = copy(c, r, w, err);
    if (!status && k3_trace_cut_off(r) >= 0)
        k3_note("%s: cut off at byte %" PRId64 "; %" PRIu64 " steps kept, the last perhaps not whole",
                k3_trace_name(r), k3_trace_cut_off(r), k3_trace_count(r).steps);
    if (!status)
        status = k3_trace_close(&w, err);
    k3_trace_abort(&w);
    k3_trace_free(r);
    return status;
}

int cmd_cut(int argc, char **argv, k3_err *err)
{
    const struct range all = {0, UINT64_MAX};
    struct cut c = {.out = "-", .steps = all, .layers = all, .sequences = all};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    bool done;
    int status = k3_opt_parse(&args, &c, &done, err);
    if (!status && !done)
        status = run(&c, &args, err);
    free(c.row);
    free(c.experts);
    free(c.weights);
    free(c.residency);
    return status;
}
