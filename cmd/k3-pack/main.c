/* k3-pack: the trunk of a checkpoint in one file, in the order in which it is read. */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_OUTPUT, OPT_INDEX, OPT_SUMS, OPT_TILE, OPT_DIRECT, OPT_THREADS, OPT_DEPTH, OPT_JSON };

static const k3_opt table[] = {
    {"model", 'm', "MODEL", OPT_MODEL, "the checkpoint folder (default: $K3_MODEL)"},
    {"output", 'o', "FILE", OPT_OUTPUT, "build: the file to write (default: MODEL/k3.trunk)"},
    {"index", 0, "FILE", OPT_INDEX, "the index file (default: MODEL/k3.index)"},
    {"sums", 0, "FILE", OPT_SUMS, "build: checksums of the shards (default: MODEL/k3.sums)"},
    {"tile", 0, "SIZE", OPT_TILE, "build: largest piece that is read at once, 4Ki to 16Mi\n(default: 4Mi)"},
    {"direct", 0, "on|off", OPT_DIRECT, "build, check: read past the page cache (default: on)"},
    {"threads", 0, "N", OPT_THREADS, "build, check: threads that compute checksums (default: cores)"},
    {"io-depth", 0, "N", OPT_DEPTH, "build, check: tiles in flight at once (default: 8)"},
    {"json", 0, NULL, OPT_JSON, "the output as JSON"},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] =
    "usage: k3-pack MODEL [-o FILE]             the same as: k3-pack build -m MODEL\n"
    "       k3-pack build [-m MODEL] [-o FILE]  pack the trunk; goes on where an earlier run stopped\n"
    "       k3-pack check [-m MODEL] [FILE]     full read: every byte of a packed trunk\n"
    "       k3-pack info  [-m MODEL] [FILE]     what a packed trunk holds\n"
    "\n"
    "FILE is MODEL/k3.trunk if not given. With -m, check and info also compare\n"
    "the file with the checkpoint.\n";

/* Bits of the options that were given, to be checked against the verb. */
#define BIT(id) K3_OPT_BIT(id)

struct verb {
    const char *name;
    int (*run)(const pack_opts *o, k3_err *err);
    uint64_t allowed;
};

static const struct verb verbs[] = {
    {"build", pack_build, BIT(OPT_MODEL) | BIT(OPT_OUTPUT) | BIT(OPT_INDEX) | BIT(OPT_SUMS) | BIT(OPT_TILE) | BIT(OPT_DIRECT) |
                              BIT(OPT_THREADS) | BIT(OPT_DEPTH) | BIT(OPT_JSON)},
    {"check", pack_check, BIT(OPT_MODEL) | BIT(OPT_INDEX) | BIT(OPT_DIRECT) | BIT(OPT_THREADS) | BIT(OPT_DEPTH) | BIT(OPT_JSON)},
    {"info", pack_info, BIT(OPT_MODEL) | BIT(OPT_INDEX) | BIT(OPT_JSON)},
};

/* The verb, then MODEL for build and FILE for the others. */
static int take_operands(const k3_args *a, const struct verb **verb, pack_opts *o, k3_err *err)
{
    int at = 0;
    if (!a->noperands && !o->model)
        return k3_fail(err, K3_EUSAGE, "what to do: a MODEL to pack, or a verb; try --help");
    *verb = &verbs[0];
    for (unsigned i = 0; a->noperands && i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(a->operands[0], verbs[i].name)) {
            *verb = &verbs[i];
            at = 1;
        }
    const char *operand = at < a->noperands ? a->operands[at++] : NULL;
    if (at < a->noperands)
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many; try --help", a->operands[at]);
    if (operand && *verb == &verbs[0]) {
        if (o->model)
            return k3_fail(err, K3_EUSAGE, "%s: a second MODEL beside %s, or an unknown verb; try --help", operand, o->model);
        o->model = operand;
    } else if (operand) {
        o->file = operand;
    }
    return 0;
}

/* What the command line left open: model, file, and whether the two are compared. */
static int complete(pack_opts *o, const struct verb *verb, char **path, k3_err *err)
{
    o->compare = o->model != NULL;
    if (!o->model && (o->model = getenv("K3_MODEL")) && !*o->model)
        o->model = NULL;
    if (!o->model && (verb == &verbs[0] || !o->file))
        return k3_fail(err, K3_EUSAGE, "which model: give -m MODEL or set K3_MODEL");
    if (!o->file) {
        size_t n = strlen(o->model) + sizeof "/k3.trunk";
        if (!(*path = malloc(n)))
            return k3_fail(err, K3_ESYS, "out of memory");
        snprintf(*path, n, "%s/k3.trunk", o->model);
        o->file = *path;
        o->compare = true;
    }
    if (!o->work.threads)
        o->work.threads = k3_threads_default();
    return 0;
}

static int run(const k3_args *a, uint64_t given, pack_opts *o, k3_err *err)
{
    const struct verb *verb = NULL;
    char *path = NULL;
    int status = take_operands(a, &verb, o, err);
    if (!status)
        status = k3_opt_only(table, given, verb->allowed, verb->name, err);
    if (!status)
        status = complete(o, verb, &path, err);
    if (!status)
        status = verb->run(o, err);
    free(path);
    return status;
}

static int take_option(void *arg, int id, const char *value, k3_err *err)
{
    pack_opts *o = arg;
    bool on;
    uint64_t n;
    int status = 0;
    switch (id) {
    case OPT_MODEL:
        o->model = value;
        break;
    case OPT_OUTPUT:
        o->file = value;
        break;
    case OPT_INDEX:
        o->index = value;
        break;
    case OPT_SUMS:
        o->work.sums = value;
        break;
    case OPT_TILE:
        status = k3_num_size(value, "--tile", 1, &o->work.tile_bytes, err);
        if (!status && (o->work.tile_bytes < K3_PACK_TILE_MIN || o->work.tile_bytes > K3_PACK_TILE_MAX))
            status = k3_fail(err, K3_EUSAGE, "--tile: \"%s\" is outside 4Ki..16Mi", value);
        break;
    case OPT_DIRECT:
        status = k3_opt_on_off(value, "--direct", &on, err);
        o->work.plain = !on;
        break;
    case OPT_THREADS:
        status = k3_opt_threads(value, &o->work.threads, err);
        break;
    case OPT_DEPTH:
        if (!(status = k3_num_u64(value, "--io-depth", 1, K3_PACK_DEPTH_MAX, &n, err)))
            o->work.depth = (int)n;
        break;
    case OPT_JSON:
        o->json = true;
        break;
    }
    return status;
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table};
    pack_opts o = {.work = {.tile_bytes = K3_PACK_TILE_DEFAULT, .depth = 8}};
    uint64_t given = 0;
    bool done;
    k3_prog_start("k3-pack");
    int status = k3_opt_all(&args, usage, take_option, &o, &given, &done, &err);
    if (status || done)
        return k3_prog_end(status ? k3_report_error(&err) : 0);
    k3_catch_signals();
    status = run(&args, given, &o, &err);
    k3_progress_end();
    if (status)
        status = k3_report_error(&err);
    if (k3_interrupted && status)
        k3_die_by_signal();
    return k3_prog_end(status);
}
