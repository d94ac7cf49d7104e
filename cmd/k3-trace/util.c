/* SPDX-License-Identifier: Apache-2.0 */
/* Operands, lists and outputs of the commands. */
#include "trace.h"

#include "k3_store.h"

#include <string.h>
#include <unistd.h>

int open_operand(const k3_args *args, k3_trace_reader **r, k3_err *err)
{
    *r = NULL;
    if (args->noperands > 1)
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many; a single trace is read", args->operands[1]);
    if (!args->noperands && isatty(0))
        return k3_fail(err, K3_EUSAGE, "which trace: name a file, or - for standard input");
    return k3_trace_open(r, args->noperands ? args->operands[0] : "-", err);
}

int create_output(const char *path, const k3_trace_header *h, k3_trace_writer **w, k3_err *err)
{
    *w = NULL;
    if (!strcmp(path, "-") && isatty(1))
        return k3_fail(err, K3_EUSAGE, "a trace is not for a terminal: give -o FILE or redirect the output");
    return k3_trace_create(w, path, h, false, err);
}

int copy_batch(k3_trace_writer *w, const k3_trace_batch *b, k3_err *err)
{
    int status = b->new_step ? k3_trace_step_rows(w, b->row, b->rows, err) : 0;
    if (status)
        return status;
    return k3_trace_layer(w, b->layer, b->experts, b->rows * b->k, b->weights, b->residency, err);
}

int parse_range(const char *text, const char *what, uint64_t *from, uint64_t *to, k3_err *err)
{
    const uint64_t most = UINT64_MAX - 1;
    const char *dash = strchr(text, '-');
    char first[32];
    if (!dash) {
        int status = k3_num_u64(text, what, 0, most, from, err);
        *to = *from;
        return status;
    }
    snprintf(first, sizeof first, "%.*s", (int)(dash - text), text);
    int status = k3_num_u64(first, what, 0, most, from, err);
    *to = UINT64_MAX;
    if (!status && dash[1])
        status = k3_num_u64(dash + 1, what, 0, most, to, err);
    if (!status && *to < *from)
        status = k3_fail(err, K3_EUSAGE, "%s: \"%s\" ends before it starts", what, text);
    return status;
}

int parse_shape(const char *text, k3_shape *shape, k3_err *err)
{
    int *const field[] = {&shape->layers, &shape->first, &shape->experts, &shape->topk};
    const char *list = text;
    char item[32];
    int n = 0;
    while (k3_opt_word(&list, ',', item, sizeof item)) {
        uint64_t v;
        if (n == 4 || k3_num_u64(item, "--shape", 0, 65535, &v, err)) {
            n = 0;
            break;
        }
        *field[n++] = (int)v;
    }
    if (n == 4)
        return 0;
    return k3_fail(err, K3_EUSAGE, "--shape: \"%s\" is not LAYERS,FIRST,EXPERTS,TOPK such as 93,1,896,16", text);
}

int model_header(const char *dir, k3_trace_header *h, uint64_t *trunk, k3_err *err)
{
    k3_index *ix;
    k3_order *order = NULL;
    int status = k3_index_open(&ix, dir, NULL, err);
    if (status)
        return status;
    const k3_config *c = k3_index_config(ix);
    if (c->first_moe >= c->layers)
        status = k3_fail(err, K3_EUSAGE, "%s: the model has no experts", dir);
    else if (trunk && !(status = k3_order_new(&order, c, 0, c->layers, false, 16 << 20, err)))
        *trunk = order->trunk_bytes;
    h->shape = (k3_shape){
        .layers = (int)c->layers, .first = (int)c->first_moe, .experts = (int)c->experts, .topk = (int)c->topk};
    h->expert_bytes = k3_expert_bytes(c);
    h->fingerprint = k3_index_fingerprint(ix);
    k3_order_free(order);
    k3_index_close(ix);
    return status;
}

int check_model(const char *dir, const k3_trace_reader *r, uint64_t *trunk, k3_err *err)
{
    char a[K3_FINGERPRINT_TEXT], b[K3_FINGERPRINT_TEXT];
    k3_trace_header model;
    int status = dir ? model_header(dir, &model, trunk, err) : 0;
    if (!dir || status)
        return status;
    k3_fingerprint f = k3_trace_info(r)->fingerprint;
    if (k3_fingerprint_equal(f, model.fingerprint))
        return 0;
    return k3_fail(err, K3_EDATA, "%s: is of another model (%s) than %s (%s)", k3_trace_name(r), model_text(f, a),
                   dir, model_text(model.fingerprint, b));
}

const char *model_text(k3_fingerprint f, char buf[K3_FINGERPRINT_TEXT])
{
    return f.lo || f.hi ? k3_fingerprint_text(buf, f) : "not known";
}
