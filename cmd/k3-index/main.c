/* SPDX-License-Identifier: Apache-2.0 */
/* k3-index: index a checkpoint, look inside it, check it. */
#include "index.h"

#include <stdlib.h>
#include <string.h>

/* Bits of the verbs, in the order of the table below. */
enum { BUILD = 1, LS = 2, SHOW = 4, CAT = 8, CENSUS = 16, CHECK = 32, VERIFY = 64, CONFIG = 128, PROBE = 256 };

static int take_depths(void *opts, const char *list, k3_err *err);

#define AT(field) offsetof(index_opts, field)
static const k3_opt table[] = {
    {"model", 'm', "MODEL", "the checkpoint folder (default: $K3_MODEL)", K3_OPT_TEXT, AT(model)},
    {"index", 0, "FILE", "the index file (default: MODEL/k3.index)", K3_OPT_TEXT, AT(index_file), .verbs = ~CONFIG},
    {"json", 0, NULL, "the output as JSON", K3_OPT_FLAG, AT(json), .verbs = ~CAT},
    {"threads", 0, "N", "build, check, verify: threads (default: cores; verify: at least 4)", K3_OPT_INT, AT(threads), 1, 1024,
     .verbs = BUILD | CHECK | VERIFY},
    {"decode", 0, NULL, "cat: the weights of an expert's matrix as float32", K3_OPT_FLAG, AT(decode), .verbs = CAT},
    {"sizes", 0, "FILE", "check: what the shards must measure, lines of name and bytes", K3_OPT_TEXT, AT(sizes_file), .verbs = CHECK},
    {"write-sums", 0, NULL, "verify: write checksums that later reads are compared with", K3_OPT_FLAG, AT(write_sums),
     .verbs = VERIFY},
    {"sums", 0, "FILE", "cat, verify: the file of checksums (default: MODEL/k3.sums)", K3_OPT_TEXT, AT(sums_file),
     .verbs = CAT | VERIFY},
    {"size", 0, "SIZE", "probe: bytes of a read (default: an expert's)", K3_OPT_SIZE, AT(read_size), 4096, 1 << 30, .verbs = PROBE},
    {"depth", 0, "LIST", "probe: reads in flight, measured one after the other (default: 1,4,16)", K3_OPT_CALL,
     .take = take_depths, .verbs = PROBE},
    {"huge", 0, "on|off", "probe: read into huge pages, as k3-decode does (default: on)", K3_OPT_ON_OFF, AT(huge), .verbs = PROBE},
    {"in-order", 0, NULL, "probe: piece after piece, as a trunk is read, not at random places", K3_OPT_FLAG, AT(in_order),
     .verbs = PROBE},
    {"seconds", 0, "S", "probe: time for each depth (default: 1)", K3_OPT_DOUBLE, AT(seconds), .low = 0.01, .high = 600,
     .verbs = PROBE},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] =
    "usage: k3-index MODEL\n"
    "       k3-index VERB [-m MODEL] [options] [operand]\n"
    "\n"
    "Index a checkpoint's shards, look inside them, check them. Verbs:\n"
    "  build         read and check all headers, write MODEL/k3.index (the same as k3-index MODEL)\n"
    "  ls [PATTERN]  name, dtype, shape, bytes, shard and offset of all tensors or of some\n"
    "  show NAME     one tensor and its first values\n"
    "  cat NAME      one tensor as .npy on standard output\n"
    "  census        bytes, counts and parameters by class\n"
    "  check         fast: every shard present, whole and unchanged; all problems are named\n"
    "  verify        read every byte: odd values, padding, checksums\n"
    "  config        what was understood of config.json\n"
    "  probe [FILE]  how fast the device of the shards, or of FILE, delivers what k3-decode reads\n";

enum operand { NO_OPERAND, OPTIONAL, REQUIRED };

struct verb {
    const char *name;
    int (*run)(const index_opts *o, k3_err *err);
    enum operand operand;
};

static const struct verb verbs[] = {
    {"build", index_build, NO_OPERAND},
    {"ls", index_ls, OPTIONAL},
    {"show", index_show, REQUIRED},
    {"cat", index_cat, REQUIRED},
    {"census", index_census, NO_OPERAND},
    {"check", index_check, NO_OPERAND},
    {"verify", index_verify, NO_OPERAND},
    {"config", index_config, NO_OPERAND},
    {"probe", index_probe, OPTIONAL},
};

static const struct verb *find_verb(const char *name)
{
    for (unsigned i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(name, verbs[i].name))
            return &verbs[i];
    return NULL;
}

/* Shares the operands out: the verb, then MODEL where the verb wants nothing of its own. */
static int take_operands(const k3_args *a, const struct verb **verb, index_opts *o, k3_err *err)
{
    int at = 0;
    if (!a->noperands)
        return k3_fail(err, K3_EUSAGE, "what to do: a MODEL to index, or a verb; try --help");
    *verb = find_verb(a->operands[0]);
    if (*verb)
        at = 1;
    else if (a->noperands == 1)
        *verb = &verbs[0];
    else
        return k3_fail(err, K3_EUSAGE, "%s: unknown verb; try --help", a->operands[0]);
    const char *operand = at < a->noperands ? a->operands[at++] : NULL;
    if (at < a->noperands)
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many; try --help", a->operands[at]);
    if ((*verb)->operand == REQUIRED && !operand)
        return k3_fail(err, K3_EUSAGE, "%s: which tensor? k3-index ls lists them", (*verb)->name);
    if ((*verb)->operand != NO_OPERAND) {
        o->operand = operand;
        return 0;
    }
    if (operand && o->model)
        return k3_fail(err, K3_EUSAGE, "%s: a second MODEL beside %s, or an unknown verb; try --help", operand, o->model);
    if (operand)
        o->model = operand;
    return 0;
}

static int run(const k3_args *a, index_opts *o, k3_err *err)
{
    const struct verb *verb = NULL;
    int status = take_operands(a, &verb, o, err);
    if (!status)
        status = k3_opt_only(a, 1u << (verb - verbs), verb->name, err);
    bool needs_model = status || verb->run != index_probe || !o->operand;
    if (!status && needs_model)
        status = k3_opt_model(&o->model, err);
    else if (!status && !o->model)
        o->model = k3_env("K3_MODEL");
    return status ? status : verb->run(o, err);
}

/* --depth 1,4,16 */
static int take_depths(void *opts, const char *list, k3_err *err)
{
    index_opts *o = opts;
    o->ndepths = 0;
    for (const char *at = list;; at++) {
        char text[24];
        uint64_t depth;
        size_t n = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)(n < 23 ? n : 23), at);
        int status = k3_num_u64(text, "--depth", 1, 256, &depth, err);
        if (status)
            return status;
        if (o->ndepths == MAX_DEPTHS)
            return k3_fail(err, K3_EUSAGE, "--depth %s: more than %d depths", list, MAX_DEPTHS);
        o->depths[o->ndepths++] = (uint32_t)depth;
        at += n;
        if (!*at)
            return 0;
    }
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    index_opts o = {.seconds = 1, .depths = {1, 4, 16}, .ndepths = 3, .huge = true};
    bool done;
    k3_prog_start("k3-index");
    int status = k3_opt_parse(&args, &o, &done, &err);
    if (!status && !done)
        status = run(&args, &o, &err);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
