/* k3-index: index a checkpoint, look inside it, check it. */
#include "index.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_INDEX, OPT_THREADS, OPT_JSON, OPT_DECODE, OPT_SIZES, OPT_WRITE_SUMS, OPT_SUMS, OPT_SIZE, OPT_DEPTH, OPT_HUGE, OPT_IN_ORDER, OPT_SECONDS };

static const k3_opt table[] = {
    {"model", 'm', "MODEL", OPT_MODEL, "the checkpoint folder (default: $K3_MODEL)"},
    {"index", 0, "FILE", OPT_INDEX, "the index file (default: MODEL/k3.index)"},
    {"json", 0, NULL, OPT_JSON, "the output as JSON"},
    {"threads", 0, "N", OPT_THREADS, "build, check, verify: threads (default: cores; verify: at least 4)"},
    {"decode", 0, NULL, OPT_DECODE, "cat: the weights of an expert's matrix as float32"},
    {"sizes", 0, "FILE", OPT_SIZES, "check: what the shards must measure, lines of name and bytes"},
    {"write-sums", 0, NULL, OPT_WRITE_SUMS, "verify: write checksums that later reads are compared with"},
    {"sums", 0, "FILE", OPT_SUMS, "cat, verify: the file of checksums (default: MODEL/k3.sums)"},
    {"size", 0, "SIZE", OPT_SIZE, "probe: bytes of a read (default: an expert's)"},
    {"depth", 0, "LIST", OPT_DEPTH, "probe: reads in flight, measured one after the other (default: 1,4,16)"},
    {"huge", 0, "on|off", OPT_HUGE, "probe: read into huge pages, as k3-decode does (default: on)"},
    {"in-order", 0, NULL, OPT_IN_ORDER, "probe: piece after piece, as a trunk is read, not at random places"},
    {"seconds", 0, "S", OPT_SECONDS, "probe: time for each depth (default: 1)"},
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

/* Bits of the options that were given, to be checked against the verb. */
#define BIT(id) K3_OPT_BIT(id)

enum operand { NO_OPERAND, OPTIONAL, REQUIRED };

struct verb {
    const char *name;
    int (*run)(const index_opts *o, k3_err *err);
    uint64_t allowed;
    enum operand operand;
};

static const struct verb verbs[] = {
    {"build", index_build, BIT(OPT_INDEX) | BIT(OPT_JSON) | BIT(OPT_THREADS), NO_OPERAND},
    {"ls", index_ls, BIT(OPT_INDEX) | BIT(OPT_JSON), OPTIONAL},
    {"show", index_show, BIT(OPT_INDEX) | BIT(OPT_JSON), REQUIRED},
    {"cat", index_cat, BIT(OPT_INDEX) | BIT(OPT_DECODE) | BIT(OPT_SUMS), REQUIRED},
    {"census", index_census, BIT(OPT_INDEX) | BIT(OPT_JSON), NO_OPERAND},
    {"check", index_check, BIT(OPT_INDEX) | BIT(OPT_JSON) | BIT(OPT_THREADS) | BIT(OPT_SIZES), NO_OPERAND},
    {"verify", index_verify, BIT(OPT_INDEX) | BIT(OPT_JSON) | BIT(OPT_THREADS) | BIT(OPT_WRITE_SUMS) | BIT(OPT_SUMS), NO_OPERAND},
    {"config", index_config, BIT(OPT_JSON), NO_OPERAND},
    {"probe", index_probe, BIT(OPT_INDEX) | BIT(OPT_JSON) | BIT(OPT_SIZE) | BIT(OPT_DEPTH) | BIT(OPT_HUGE) | BIT(OPT_IN_ORDER) | BIT(OPT_SECONDS), OPTIONAL},
};

static const struct verb *find_verb(const char *name)
{
    for (unsigned i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(name, verbs[i].name))
            return &verbs[i];
    return NULL;
}

/* Shares the operands out: the verb, then MODEL where the verb wants nothing of its own. */
static int take_operands(k3_args *a, const struct verb **verb, index_opts *o, k3_err *err)
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

static int run(k3_args *a, uint64_t given, index_opts *o, k3_err *err)
{
    const struct verb *verb = NULL;
    int status = take_operands(a, &verb, o, err);
    if (!status)
        status = k3_opt_only(table, given, verb->allowed | BIT(OPT_MODEL), verb->name, err);
    bool needs_model = status || verb->run != index_probe || !o->operand;
    if (!status && needs_model)
        status = k3_opt_model(&o->model, err);
    else if (!status && !o->model)
        o->model = getenv("K3_MODEL");
    return status ? status : verb->run(o, err);
}

/* --depth 1,4,16 */
static int take_depths(const char *list, index_opts *o, k3_err *err)
{
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

static int take_option(void *arg, int id, const char *value, k3_err *err)
{
    index_opts *o = arg;
    bool on;
    int status = 0;
    switch (id) {
    case OPT_MODEL:
        o->model = value;
        break;
    case OPT_INDEX:
        o->index_file = value;
        break;
    case OPT_SIZES:
        o->sizes_file = value;
        break;
    case OPT_SUMS:
        o->sums_file = value;
        break;
    case OPT_SIZE:
        if (!(status = k3_num_size(value, "--size", 1, &o->read_size, err)) && (o->read_size < 4096 || o->read_size > 1 << 30))
            status = k3_fail(err, K3_EUSAGE, "--size %s: from 4Ki to 1Gi", value);
        break;
    case OPT_DEPTH:
        status = take_depths(value, o, err);
        break;
    case OPT_HUGE:
        status = k3_opt_on_off(value, "--huge", &on, err);
        o->small_pages = !on;
        break;
    case OPT_IN_ORDER:
        o->in_order = true;
        break;
    case OPT_SECONDS:
        status = k3_num_double(value, "--seconds", 0.01, 600, &o->seconds, err);
        break;
    case OPT_THREADS:
        status = k3_opt_threads(value, &o->threads, err);
        break;
    case OPT_JSON:
        o->json = true;
        break;
    case OPT_DECODE:
        o->decode = true;
        break;
    case OPT_WRITE_SUMS:
        o->write_sums = true;
        break;
    }
    return status;
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table};
    index_opts o = {.seconds = 1, .depths = {1, 4, 16}, .ndepths = 3};
    uint64_t given = 0;
    bool done;
    k3_prog_start("k3-index");
    int status = k3_opt_all(&args, usage, take_option, &o, &given, &done, &err);
    if (!status && !done)
        status = run(&args, given, &o, &err);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
