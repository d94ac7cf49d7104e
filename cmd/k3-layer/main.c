/* SPDX-License-Identifier: Apache-2.0 */
/* k3-layer: one layer of the model, its ends, the comparison of arrays, and a study of its weights. */
#include "layer.h"

#include <stdlib.h>
#include <string.h>

/* Bits of the verbs, in the order of the table below. */
enum { LAYER = 1, EMBED = 2, HEAD = 4, DIFF = 8, QUANT = 16, COMPUTE = LAYER | EMBED | HEAD };

#define PARTS "attn|mlp|router|moe" /* as in k3_layer_part */
#define AT(field) offsetof(layer_opts, field)
static const k3_opt table[] = {
    {"model", 'm', "MODEL", "the checkpoint folder (default: $K3_MODEL)", K3_OPT_TEXT, AT(model), .verbs = COMPUTE | QUANT},
    {"index", 0, "FILE", "its index (default: MODEL/k3.index)", K3_OPT_TEXT, AT(index_file), .verbs = COMPUTE | QUANT},
    {"layer", 'l', "L", "the layer, from 0", K3_OPT_U64, AT(layer), 0, K3_MAX_LAYERS - 1, .verbs = LAYER | QUANT},
    {"part", 'p', "PART", "attn, mlp, router or moe alone, on its normed input", K3_OPT_WORD, AT(part), .words = PARTS,
     .verbs = LAYER},
    {"weights", 'w', "FILE", "--part router: the weights of the experts, float32 .npy", K3_OPT_TEXT, AT(weights_file),
     .verbs = LAYER},
    {"state", 's', "FILE", "go on from the state in FILE, if there is one, and leave the new one there", K3_OPT_TEXT,
     AT(state_file), .verbs = LAYER},
    {"layers", 0, "N", "head: N layers have run (default: all of the model's)", K3_OPT_U64, AT(layers), 1, K3_MAX_LAYERS,
     .verbs = HEAD},
    {"chunk", 0, "N", "tokens in one pass over the weights (default: 256)", K3_OPT_U64, AT(chunk), 1, 1 << 20, .verbs = COMPUTE},
    {"threads", 't', "N", "compute threads (default: the physical cores at hand)", K3_OPT_INT, AT(threads), 1, 1024,
     .verbs = COMPUTE | QUANT},
    {"tol", 0, "X", "diff: allow differences up to X times the largest value of B (default: 0)", K3_OPT_DOUBLE, AT(tol),
     .high = 1e300, .verbs = DIFF},
    {"tol-abs", 0, "X", "diff: allow differences up to X", K3_OPT_DOUBLE, AT(tol_abs), .high = 1e300, .verbs = DIFF},
    {"rows", 0, "N", "quant-error: N rows of each tensor, evenly spread (default: all)", K3_OPT_U64, AT(rows), 1, UINT32_MAX,
     .verbs = QUANT},
    {"each", 0, NULL, "quant-error: a line for every row instead of the means and the worst rows", K3_OPT_FLAG, AT(each),
     .verbs = QUANT},
    {"json", 0, NULL, "diff: the output as JSON", K3_OPT_FLAG, AT(json), .verbs = DIFF},
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

struct verb {
    const char *name; /* NULL: a layer, which needs none */
    int (*run)(const layer_opts *o, k3_err *err);
};

static const struct verb verbs[] = {
    {NULL, layer_run}, {"embed", layer_embed}, {"head", layer_head}, {"diff", layer_diff}, {"quant-error", layer_quant_error},
};

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

static int check_layer(const layer_opts *o, k3_err *err)
{
    if (o->layer == K3_NO_LAYER)
        return k3_fail(err, K3_EUSAGE, "which layer: give -l L, or a verb: embed, head, diff or quant-error; try --help");
    if (o->weights_file && o->part != K3_PART_ROUTER)
        return k3_fail(err, K3_EUSAGE, "--weights goes with --part router only");
    if (o->state_file && o->part > K3_PART_ATTN)
        return k3_fail(err, K3_EUSAGE, "--state does not go with --part %s, which carries none",
                       o->part == K3_PART_MLP ? "mlp" : o->part == K3_PART_ROUTER ? "router" : "moe");
    return 0;
}

static int run(const k3_args *args, layer_opts *o, k3_err *err)
{
    const struct verb *verb;
    int status = take_operands(args, &verb, o, err);
    if (!status)
        status = k3_opt_only(args, 1u << (verb - verbs), verb->name ? verb->name : "a layer", err);
    if (!status && verb->run == layer_run)
        status = check_layer(o, err);
    if (!status && verb->run != layer_diff)
        status = k3_opt_model(&o->model, err);
    return status ? status : verb->run(o, err);
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    layer_opts o = {.layer = K3_NO_LAYER, .chunk = 256, .part = -1, .tol = -1, .tol_abs = -1};
    bool done;
    k3_prog_start("k3-layer");
    int status = k3_opt_parse(&args, &o, &done, &err);
    if (!status && !done)
        status = run(&args, &o, &err);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
