/* SPDX-License-Identifier: Apache-2.0 */
/* import -f csv: the columns that export writes. Every line must be whole and in its place: a file that was cut off,
 * or that lost a line, does not pass for a shorter one. */
#define _GNU_SOURCE
#include "import.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum column { STEP, SEQUENCE, POSITION, PHASE, LAYER, RANK, EXPERT, COLUMNS, MOST_COLUMNS = COLUMNS + 2 };

struct csv {
    struct steps *steps;
    uint64_t line;     /* from 1 */
    int columns;       /* of every line: those above, then weight and residency where recorded */
    uint64_t v[COLUMNS];
    uint64_t step;     /* of the line before */
};

static int refuse(const struct csv *c, k3_err *err, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int refuse(const struct csv *c, k3_err *err, const char *format, ...)
{
    char what[700];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return k3_fail(err, K3_EDATA, "%s: line %" PRIu64 ": %s", c->steps->name, c->line, what);
}

static int read_header(struct csv *c, const char *line, k3_err *err)
{
    static const char *const forms[] = {"", ",weight", ",resident", ",weight,resident"};
    static const char base[] = "step,sequence,position,phase,layer,rank,expert";
    size_t n = sizeof base - 1;
    if (!strncmp(line, base, n))
        for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
            if (!strcmp(line + n, forms[i])) {
                c->columns = COLUMNS + (int)(i & 1) + (int)(i >> 1);
                return 0;
            }
    return refuse(c, err, "the columns are \"%.100s\"; expected %s, then weight and resident where recorded", line, base);
}

/* Cuts the line into its columns, in place, and reads those that are taken over. */
static int read_columns(struct csv *c, char *line, k3_err *err)
{
    static const char *const names[] = {"step", "sequence", "position", "phase", "layer", "rank", "expert"};
    int n = 0;
    for (char *item; (item = strsep(&line, ",")); n++) {
        k3_err why;
        if (n >= COLUMNS)
            continue;
        if (n == PHASE) {
            int phase = k3_phase(item);
            if (phase < 0)
                return refuse(c, err, "\"%.100s\" is none of prefill, decode and draft", item);
            c->v[n] = (uint64_t)phase;
        } else if (k3_num_u64(item, names[n], 0, n == POSITION ? INT64_MAX : UINT32_MAX / 2, &c->v[n], &why)) {
            return refuse(c, err, "%s", why.text);
        }
    }
    return n == c->columns ? 0 : refuse(c, err, "has %d of %d columns", n, c->columns);
}

/* Whether the line is the next one of its step: ranks from 0 to top-k - 1 for each position, and in every layer the
 * positions of the first. */
static int check_place(struct csv *c, k3_err *err)
{
    const struct steps *s = c->steps;
    const struct step_choices *t = &s->now;
    uint32_t k = (uint32_t)s->shape.topk;
    const struct step_layer *layer = t->layers ? &t->layer[t->layers - 1] : NULL;
    uint32_t rank = layer ? layer->n % k : 0;
    if (rank && (layer->layer != (int)c->v[LAYER] || c->v[RANK] != rank))
        return refuse(c, err, "layer %" PRIu64 ", rank %" PRIu64 " follows layer %d, rank %u; a position has the ranks 0 to %u in a layer",
                      c->v[LAYER], c->v[RANK], layer->layer, rank - 1, k - 1);
    if (c->v[RANK] != rank)
        return refuse(c, err, "rank %" PRIu64 " is the first of its position and layer; expected 0", c->v[RANK]);
    return 0;
}

static int take_row(struct csv *c, k3_err *err)
{
    struct steps *s = c->steps;
    const struct step_choices *t = &s->now;
    const k3_trace_row row = {.sequence = (uint32_t)c->v[SEQUENCE], .position = c->v[POSITION], .phase = (uint32_t)c->v[PHASE]};
    const struct step_layer *layer = t->layers ? &t->layer[t->layers - 1] : NULL;
    uint32_t k = (uint32_t)s->shape.topk;
    uint32_t at = layer && layer->layer == (int)c->v[LAYER] ? layer->n / k : 0; /* which of the step's rows */
    bool first_layer = t->layers <= 1 && (!layer || layer->layer == (int)c->v[LAYER]);
    if (first_layer && c->v[RANK] == 0)
        return steps_row(s, &row, err);
    if (at >= t->rows)
        return refuse(c, err, "layer %" PRIu64 " has more than the %u positions of the step's first layer", c->v[LAYER], t->rows);
    const k3_trace_row *want = &t->row[at];
    if (want->sequence == row.sequence && want->position == row.position && want->phase == row.phase)
        return 0;
    return refuse(c, err, "sequence %u, position %" PRIu64 ", %s; expected sequence %u, position %" PRIu64 ", %s", row.sequence,
                  row.position, k3_phase_name(row.phase), want->sequence, want->position, k3_phase_name(want->phase));
}

static int take_line(struct csv *c, char *line, k3_err *err)
{
    struct steps *s = c->steps;
    k3_err why = {0};
    int status = read_columns(c, line, err);
    if (!status && c->line > 2 && c->v[STEP] != c->step)
        status = steps_end(s, err);
    c->step = c->v[STEP];
    if (status || (status = check_place(c, err)) || (status = take_row(c, err)))
        return status;
    status = steps_add(s, (int)c->v[LAYER], (int)c->v[EXPERT], UINT64_MAX, &why);
    if (status == K3_EDATA) /* "FILE: WHAT": the line goes between */
        return refuse(c, err, "%.600s", why.text + strlen(s->name) + 2);
    return status ? k3_fail(err, status, "%s", why.text) : 0;
}

/* The line without its end; a last line without one may be a cut number. */
static int end_line(const struct csv *c, char *line, size_t n, k3_err *err)
{
    if (line[n - 1] != '\n')
        return refuse(c, err, "the file is cut off: its last line has no newline at the end");
    line[--n] = 0;
    if (n && line[n - 1] == '\r')
        line[--n] = 0;
    return strlen(line) == n ? 0 : refuse(c, err, "is not text: it has a zero byte");
}

int csv_read(FILE *from, struct steps *steps, k3_err *err)
{
    struct csv c = {.steps = steps};
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int status = 0;
    while (!status && (n = getline(&line, &room, from)) > 0) {
        c.line++;
        if (c.line == 1 && k3_byte_order_mark(line, (size_t)n))
            status = k3_fail_at(err, K3_EDATA, steps->name, NULL, -1, "%s", k3_byte_order_mark(line, (size_t)n));
        else if (!(status = end_line(&c, line, (size_t)n, err)))
            status = c.line == 1 ? read_header(&c, line, err) : take_line(&c, line, err);
    }
    free(line);
    if (!status && !feof(from))
        status = k3_fail_errno(err, steps->name, "cannot read");
    if (!status && !c.line)
        status = k3_fail(err, K3_EDATA, "%s: the file is empty, not a trace", steps->name);
    if (!status && c.line == 1)
        status = k3_fail(err, K3_EDATA, "%s: has no choices after the line of column names", steps->name);
    return status;
}
