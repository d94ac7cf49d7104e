/* k3-layer: one layer of the model, its ends, the comparison of arrays, and a study of its weights. */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_INDEX, OPT_LAYER, OPT_PART, OPT_WEIGHTS, OPT_STATE, OPT_LAYERS, OPT_CHUNK, OPT_THREADS, OPT_TOL,
       OPT_TOL_ABS, OPT_ROWS, OPT_EACH, OPT_JSON };

static const k3_opt table[] = {
    {"model", 'm', "MODEL", OPT_MODEL, "the checkpoint folder (default: $K3_MODEL)"},
    {"index", 0, "FILE", OPT_INDEX, "its index (default: MODEL/k3.index)"},
    {"layer", 'l', "L", OPT_LAYER, "the layer, from 0"},
    {"part", 'p', "PART", OPT_PART, "attn, mlp, router or moe alone, on its normed input"},
    {"weights", 'w', "FILE", OPT_WEIGHTS, "--part router: the weights of the experts, float32 .npy"},
    {"state", 's', "FILE", OPT_STATE, "go on from the state in FILE, if there is one, and leave the new one there"},
    {"layers", 0, "N", OPT_LAYERS, "head: N layers have run (default: all of the model's)"},
    {"chunk", 0, "N", OPT_CHUNK, "tokens in one pass over the weights (default: 256)"},
    {"threads", 't', "N", OPT_THREADS, "compute threads (default: the physical cores at hand)"},
    {"tol", 0, "X", OPT_TOL, "diff: allow differences up to X times the largest value of B (default: 0)"},
    {"tol-abs", 0, "X", OPT_TOL_ABS, "diff: allow differences up to X"},
    {"rows", 0, "N", OPT_ROWS, "quant-error: N rows of each tensor, evenly spread (default: all)"},
    {"each", 0, NULL, OPT_EACH, "quant-error: a line for every row instead of the means and the worst rows"},
    {"json", 0, NULL, OPT_JSON, "diff: the output as JSON"},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] =
    "usage: k3-layer [-m MODEL] -l L [--state FILE] <in.npy >out.npy\n"
    "       k3-layer [-m MODEL] -l L --part PART [--state FILE | --weights FILE] <in.npy >out.npy\n"
    "       k3-layer embed [-m MODEL] <ids >out.npy\n"
    "       k3-layer head  [-m MODEL] [--layers N] <in.npy >logits.npy\n"
    "       k3-layer diff  [--tol X] [--tol-abs X] [--json] A B\n"
    "       k3-layer quant-error [-m MODEL] [-l L] [--rows N] [--each] [PATTERN ...]\n"
    "\n"
    "Runs one layer on an array of snapshots and the running sum, [n, T, hidden], so that\n"
    "embed | -l 0 | -l 1 | ... | head is the model. A and B are .npy files, \"-\" for standard\n"
    "input, or FILE:I for item I along the first axis (-1: the last). quant-error tells how\n"
    "far int8 and int4 are from the rows of the trunk's matrices whose names match.\n";

/* Bits of the options that were given, to be checked against the verb. */
#define BIT(id) K3_OPT_BIT(id)
#define COMPUTE (BIT(OPT_MODEL) | BIT(OPT_INDEX) | BIT(OPT_CHUNK) | BIT(OPT_THREADS))

struct verb {
    const char *name; /* NULL: a layer, which needs none */
    int (*run)(const layer_opts *o, k3_err *err);
    uint64_t allowed;
};

static const struct verb verbs[] = {
    {NULL, layer_run, COMPUTE | BIT(OPT_LAYER) | BIT(OPT_PART) | BIT(OPT_WEIGHTS) | BIT(OPT_STATE)},
    {"embed", layer_embed, COMPUTE},
    {"head", layer_head, COMPUTE | BIT(OPT_LAYERS)},
    {"diff", layer_diff, BIT(OPT_TOL) | BIT(OPT_TOL_ABS) | BIT(OPT_JSON)},
    {"quant-error", layer_quant_error, BIT(OPT_MODEL) | BIT(OPT_INDEX) | BIT(OPT_THREADS) | BIT(OPT_LAYER) | BIT(OPT_ROWS) | BIT(OPT_EACH)},
};

static const char *const parts[] = {"attn", "mlp", "router", "moe"}; /* as in k3_layer_part */

static int take_part(layer_opts *o, const char *text, k3_err *err)
{
    for (int i = 0; i < (int)(sizeof parts / sizeof *parts); i++)
        if (!strcmp(text, parts[i])) {
            o->part = i;
            return 0;
        }
    return k3_fail(err, K3_EUSAGE, "--part: \"%s\" is none of attn, mlp, router and moe", text);
}

static int take_option(void *arg, int id, const char *value, k3_err *err)
{
    layer_opts *o = arg;
    int status = 0;
    switch (id) {
    case OPT_MODEL:
        o->model = value;
        break;
    case OPT_INDEX:
        o->index_file = value;
        break;
    case OPT_LAYER:
        o->layer_given = true;
        status = k3_num_u64(value, "--layer", 0, K3_MAX_LAYERS - 1, &o->layer, err);
        break;
    case OPT_PART:
        status = take_part(o, value, err);
        break;
    case OPT_WEIGHTS:
        o->weights_file = value;
        break;
    case OPT_STATE:
        o->state_file = value;
        break;
    case OPT_LAYERS:
        status = k3_num_u64(value, "--layers", 1, K3_MAX_LAYERS, &o->layers, err);
        break;
    case OPT_CHUNK:
        status = k3_num_u64(value, "--chunk", 1, 1 << 20, &o->chunk, err);
        break;
    case OPT_THREADS:
        status = k3_opt_threads(value, &o->threads, err);
        break;
    case OPT_TOL:
        status = k3_num_double(value, "--tol", 0, 1e300, &o->tol, err);
        break;
    case OPT_TOL_ABS:
        status = k3_num_double(value, "--tol-abs", 0, 1e300, &o->tol_abs, err);
        break;
    case OPT_ROWS:
        status = k3_num_u64(value, "--rows", 1, UINT32_MAX, &o->rows, err);
        break;
    case OPT_EACH:
        o->each = true;
        break;
    default:
        o->json = true;
    }
    return status;
}

static int take_operands(const k3_args *a, const struct verb **verb, layer_opts *o, k3_err *err)
{
    *verb = &verbs[0];
    for (size_t i = 1; a->noperands && i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(a->operands[0], verbs[i].name))
            *verb = &verbs[i];
    if (a->noperands && !(*verb)->name)
        return k3_fail(err, K3_EUSAGE, "%s: unknown verb; embed, head, diff, quant-error, or -l L alone", a->operands[0]);
    if ((*verb)->run == layer_quant_error) {
        o->patterns = a->operands + 1;
        o->npatterns = a->noperands - 1;
        return 0;
    }
    bool two = (*verb)->run == layer_diff;
    if (two && a->noperands < 3)
        return k3_fail(err, K3_EUSAGE, "diff: needs two arrays; try --help");
    if (a->noperands > (two ? 3 : (*verb)->name ? 1 : 0))
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many%s", a->operands[two ? 3 : 1],
                       two ? "" : "; arrays and ids come on standard input");
    if (two) {
        o->a = a->operands[1];
        o->b = a->operands[2];
    }
    return 0;
}

static int check_layer(uint64_t given, const layer_opts *o, k3_err *err)
{
    if (!(given & BIT(OPT_LAYER)))
        return k3_fail(err, K3_EUSAGE, "which layer: give -l L, or a verb: embed, head, diff or quant-error; try --help");
    if (o->weights_file && o->part != K3_PART_ROUTER)
        return k3_fail(err, K3_EUSAGE, "--weights goes with --part router only");
    if (o->state_file && o->part > K3_PART_ATTN)
        return k3_fail(err, K3_EUSAGE, "--state does not go with --part %s, which carries none", parts[o->part]);
    return 0;
}

static int run(const k3_args *args, uint64_t given, layer_opts *o, k3_err *err)
{
    const struct verb *verb;
    int status = take_operands(args, &verb, o, err);
    if (!status)
        status = k3_opt_only(table, given, verb->allowed, verb->name ? verb->name : "a layer", err);
    if (!status && verb->run == layer_run)
        status = check_layer(given, o, err);
    if (!status && verb->run != layer_diff)
        status = k3_opt_model(&o->model, err);
    return status ? status : verb->run(o, err);
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table};
    layer_opts o = {.chunk = 256, .part = -1, .tol = -1, .tol_abs = -1};
    uint64_t given = 0;
    bool done;
    k3_prog_start("k3-layer");
    int status = k3_opt_all(&args, usage, take_option, &o, &given, &done, &err);
    if (!status && !done)
        status = run(&args, given, &o, &err);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
