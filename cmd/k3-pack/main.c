/* SPDX-License-Identifier: Apache-2.0 */
/* k3-pack: the trunk of a checkpoint in one file, in the order in which it is read. */
#include "pack.h"

#include <stdlib.h>
#include <string.h>

/* Bits of the verbs, in the order of the table below. */
enum { BUILD = 1, CHECK = 2, INFO = 4 };

#define AT(field) offsetof(pack_opts, field)
static const k3_opt table[] = {
    {"model", 'm', "MODEL", "the checkpoint folder (default: $K3_MODEL)", K3_OPT_TEXT, AT(model)},
    {"output", 'o', "FILE", "build: the file to write (default: MODEL/k3.trunk)", K3_OPT_TEXT, AT(file), .verbs = BUILD},
    {"index", 0, "FILE", "the index file (default: MODEL/k3.index)", K3_OPT_TEXT, AT(index)},
    {"sums", 0, "FILE", "build: checksums of the shards (default: MODEL/k3.sums)", K3_OPT_TEXT, AT(work.sums), .verbs = BUILD},
    {"tile", 0, "SIZE", "build: largest piece that is read at once, 4Ki to 16Mi\n(default: 4Mi)", K3_OPT_SIZE, AT(work.tile_bytes),
     K3_PACK_TILE_MIN, K3_PACK_TILE_MAX, .verbs = BUILD},
    {"direct", 0, "on|off", "build, check: read past the page cache (default: on)", K3_OPT_ON_OFF, AT(direct),
     .verbs = BUILD | CHECK},
    {"threads", 0, "N", "build, check: threads that compute checksums (default: cores)", K3_OPT_INT, AT(work.threads), 1, 1024,
     .verbs = BUILD | CHECK},
    {"io-depth", 0, "N", "build, check: tiles in flight at once (default: 8)", K3_OPT_INT, AT(work.depth), 1, K3_PACK_DEPTH_MAX,
     .verbs = BUILD | CHECK},
    {"json", 0, NULL, "the output as JSON", K3_OPT_FLAG, AT(json)},
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

struct verb {
    const char *name;
    int (*run)(const pack_opts *o, k3_err *err);
};

static const struct verb verbs[] = {{"build", pack_build}, {"check", pack_check}, {"info", pack_info}};

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
        *path = (verb == &verbs[0] ? k3_sidecar_place : k3_sidecar_find)(o->model, "k3.trunk");
        if (!*path)
            return k3_fail(err, K3_ESYS, "out of memory");
        o->file = *path;
        o->compare = true;
    }
    o->work.plain = !o->direct;
    if (!o->work.threads)
        o->work.threads = k3_threads_default();
    return 0;
}

static int run(const k3_args *a, pack_opts *o, k3_err *err)
{
    const struct verb *verb = NULL;
    char *path = NULL;
    int status = take_operands(a, &verb, o, err);
    if (!status)
        status = k3_opt_only(a, 1u << (verb - verbs), verb->name, err);
    if (!status)
        status = complete(o, verb, &path, err);
    if (!status)
        status = verb->run(o, err);
    free(path);
    return status;
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    pack_opts o = {.work = {.tile_bytes = K3_PACK_TILE_DEFAULT, .depth = 8}, .direct = true};
    bool done;
    k3_prog_start("k3-pack");
    int status = k3_opt_parse(&args, &o, &done, &err);
    if (status || done)
        return k3_prog_end(status ? k3_report_error(&err) : 0);
    k3_catch_signals();
    status = run(&args, &o, &err);
    k3_progress_end();
    if (status)
        status = k3_report_error(&err);
    if (k3_interrupted && status)
        k3_die_by_signal();
    return k3_prog_end(status);
}
