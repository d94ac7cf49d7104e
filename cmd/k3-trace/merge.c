/* SPDX-License-Identifier: Apache-2.0 */
/* merge: several traces of one model as one, each with sequences of its own. */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const k3_opt table[] = {
    {"output", 'o', "FILE", "where to write (default: standard output)", K3_OPT_TEXT},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] = "usage: k3-trace merge [-o FILE] TRACE ...\n"
                            "\n"
                            "Joins traces of one model, one after the other. The sequences of each count on from\n"
                            "those of the trace before.\n";

struct merge {
    k3_trace_writer *w;
    k3_trace_header first;
    uint32_t base, next; /* sequence numbers: of this trace's first, of the next trace's */
    k3_trace_row *row;
    size_t room;
};

static int check(const struct merge *m, const char *first, const char *name, const k3_trace_header *h, k3_err *err)
{
    char a[K3_FINGERPRINT_TEXT], b[K3_FINGERPRINT_TEXT];
    if (!k3_fingerprint_equal(m->first.fingerprint, h->fingerprint))
        return k3_fail(err, K3_EDATA, "%s: is of model %s, %s is of model %s", name, model_text(h->fingerprint, a),
                       first, model_text(m->first.fingerprint, b));
    if (memcmp(&m->first.shape, &h->shape, sizeof h->shape))
        return k3_fail(err, K3_EDATA, "%s: has %d layers of %d experts, %d a position; %s has %d of %d, %d", name,
                       h->shape.layers, h->shape.experts, h->shape.topk, first, m->first.shape.layers,
                       m->first.shape.experts, m->first.shape.topk);
    if (m->first.expert_bytes != h->expert_bytes)
        return k3_fail(err, K3_EDATA, "%s: has experts of %" PRIu64 " bytes, %s of %" PRIu64, name, h->expert_bytes,
                       first, m->first.expert_bytes);
    if (h->weights != m->first.weights || h->residency != m->first.residency) {
        bool weights = h->weights != m->first.weights, has = weights ? h->weights : h->residency;
        return k3_fail(err, K3_EDATA, "%s: records %s, %s does not", has ? name : first,
                       weights ? "weights" : "residency", has ? first : name);
    }
    return 0;
}

static int add_step(struct merge *m, const k3_trace_batch *b, k3_err *err)
{
    if ((size_t)b->rows > m->room) {
        free(m->row);
        m->row = malloc((size_t)b->rows * sizeof *m->row);
        m->room = m->row ? (size_t)b->rows : 0;
        if (!m->row)
            return k3_fail(err, K3_ESYS, "out of memory for a step of %d positions", b->rows);
    }
    for (int i = 0; i < b->rows; i++) {
        m->row[i] = b->row[i];
        m->row[i].sequence += m->base;
        if (m->row[i].sequence >= m->next)
            m->next = m->row[i].sequence + 1;
    }
    return k3_trace_step_rows(m->w, m->row, b->rows, err);
}

static int add_trace(struct merge *m, k3_trace_reader *r, k3_err *err)
{
    const k3_trace_batch *b;
    int status;
    m->base = m->next;
    while (!(status = k3_trace_next(r, &b, err)) && b) {
        if (b->new_step && (status = add_step(m, b, err)))
            break;
        if ((status = k3_trace_layer(m->w, b->layer, b->experts, b->rows * b->k, b->weights, b->residency, err)))
            break;
    }
    return status;
}

static int run(struct merge *m, const k3_args *args, const char *out, k3_err *err)
{
    int status = 0;
    for (int i = 0; i < args->noperands && !status; i++) {
        k3_trace_reader *r;
        if ((status = k3_trace_open(&r, args->operands[i], err)))
            break;
        const k3_trace_header *h = k3_trace_info(r);
        if (!i) {
            m->first = *h;
            m->first.policy = args->noperands > 1 ? -1 : h->policy; /* each run began with an empty cache */
            status = create_output(out, &m->first, &m->w, err);
        } else {
            status = check(m, args->operands[0], args->operands[i], h, err);
        }
        if (!status)
            status = add_trace(m, r, err);
        k3_trace_free(r);
    }
    return status ? status : k3_trace_close(&m->w, err);
}

int cmd_merge(int argc, char **argv, k3_err *err)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    struct merge m = {.next = 0};
    const char *out = "-";
    bool done;
    int status = k3_opt_parse(&args, &out, &done, err);
    if (status || done)
        return status;
    if (!args.noperands)
        return k3_fail(err, K3_EUSAGE, "which traces: name at least one");
    status = run(&m, &args, out, err);
    k3_trace_abort(&m.w);
    free(m.row);
    return status;
}
