/* The command line of k3-decode. */
#include "decode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { O_MODEL = 1, O_INDEX, O_GEN, O_LAYERS, O_STOP, O_LOGITS, O_REPORT, O_THREADS, O_CHUNK, O_TILE };

static const char usage[] =
    "usage: k3-decode [-m MODEL] [options] < prompts\n"
    "\n"
    "Reads one prompt a line as decimal ids, decodes greedily and writes the ids,\n"
    "each as soon as it is known, one line for each prompt.\n";

static const k3_opt table[] = {
    {"model", 'm', "DIR", O_MODEL, "the checkpoint folder (default: $K3_MODEL)"},
    {"index", 0, "FILE", O_INDEX, "its index (default: DIR/k3.index)"},
    {"gen", 'n', "N", O_GEN, "ids to generate after each prompt (default: 8; 0 only reads it)"},
    {"stop-id", 0, "ID", O_STOP, "end a sequence after this id, repeatable; \"none\" for never\n"
                                 "(default: the end ids of config and tokenizer)"},
    {"layers", 0, "N", O_LAYERS, "run the first N layers only, then norm and head"},
    {"logits", 0, "FILE", O_LOGITS, "write the logits of every position fed, float32 [rows, vocab] .npy"},
    {"report", 0, "FILE", O_REPORT, "write a JSON report of the run"},
    {"threads", 't', "N", O_THREADS, "compute threads (default: the physical cores at hand)"},
    {"chunk", 0, "N", O_CHUNK, "prompt tokens in one pass over the weights (default: 32)"},
    {"tile", 0, "SIZE", O_TILE, "largest piece of a matrix read at once (default: 16Mi)"},
    K3_COMMON_OPTS,
    {0},
};

static int add_stop(struct options *o, const char *text, k3_err *err)
{
    uint64_t id;
    o->stops_given = true;
    if (!strcmp(text, "none"))
        return 0;
    int status = k3_num_u64(text, "--stop-id", 0, UINT32_MAX, &id, err);
    if (!status && o->nstops == MAX_STOPS)
        status = k3_fail(err, K3_EUSAGE, "--stop-id: more than %d ids", MAX_STOPS);
    if (!status)
        o->stops[o->nstops++] = (uint32_t)id;
    return status;
}

static int take(struct options *o, int id, const char *value, k3_err *err)
{
    uint64_t n;
    int status = 0;
    switch (id) {
    case O_MODEL:
        o->model = value;
        return 0;
    case O_INDEX:
        o->index = value;
        return 0;
    case O_GEN:
        return k3_num_u64(value, "--gen", 0, 1 << 30, &o->gen, err);
    case O_LAYERS:
        return k3_num_u64(value, "--layers", 1, K3_MAX_LAYERS, &o->layers, err);
    case O_STOP:
        return add_stop(o, value, err);
    case O_LOGITS:
        o->logits = value;
        return 0;
    case O_REPORT:
        o->report = value;
        return 0;
    case O_THREADS:
        if (!(status = k3_num_u64(value, "--threads", 1, 1024, &n, err)))
            o->threads = (int)n;
        return status;
    case O_CHUNK:
        return k3_num_u64(value, "--chunk", 1, 1 << 20, &o->chunk, err);
    default:
        if (!(status = k3_num_size(value, "--tile", 1, &o->tile, err)) && (o->tile < 4096 || o->tile > 1 << 30))
            status = k3_fail(err, K3_EUSAGE, "--tile: \"%s\" is outside 4Ki..1Gi", value);
        return status;
    }
}

int options_parse(struct options *o, int argc, char **argv)
{
    k3_args args = {.argc = argc, .argv = argv, .table = table};
    k3_err err = {0};
    int id;
    *o = (struct options){.model = getenv("K3_MODEL"), .gen = 8, .chunk = 32, .tile = 16 << 20};
    while ((id = k3_opt_next(&args, &err)) != K3_OPT_DONE) {
        if (id == K3_OPT_HELP) {
            k3_opt_help(stdout, usage, table);
            return 1;
        }
        if (id == K3_OPT_VERSION) {
            k3_print_version();
            return 1;
        }
        if (id == K3_OPT_BAD || take(o, id, args.value, &err))
            return k3_report_error(&err) + 1;
    }
    if (args.noperands)
        k3_fail(&err, K3_EUSAGE, "%s: unexpected argument; prompts come on standard input", args.operands[0]);
    else if (!o->model || !*o->model)
        k3_fail(&err, K3_EUSAGE, "no model: give -m DIR or set K3_MODEL");
    if (err.status)
        return k3_report_error(&err) + 1;
    if (!o->threads)
        o->threads = k3_threads_default();
    return 0;
}

int options_finish(struct options *o, const k3_config *c, k3_err *err)
{
    if (o->layers > c->layers)
        return k3_fail(err, K3_EUSAGE, "--layers: %" PRIu64 ", the model has %" PRIu64, o->layers, c->layers);
    if (!o->layers)
        o->layers = c->layers;
    for (size_t i = 0; i < o->nstops; i++)
        if (o->stops[i] >= c->vocab)
            return k3_fail(err, K3_EUSAGE, "--stop-id: %" PRIu32 " is outside the vocabulary of %" PRIu64, o->stops[i],
                           c->vocab);
    if (o->stops_given)
        return 0;
    memcpy(o->stops, c->eos, (size_t)c->neos * sizeof *o->stops);
    o->nstops = (size_t)c->neos;
    size_t more = 0;
    int status = k3_vocab_eos(o->model, o->stops + o->nstops, MAX_STOPS - o->nstops, &more, err);
    o->nstops += more;
    return status;
}

bool is_stop(const struct options *o, uint32_t id)
{
    for (size_t i = 0; i < o->nstops; i++)
        if (o->stops[i] == id)
            return true;
    return false;
}
