/* k3-tok: text to ids and ids to text. */
#include "tok.h"

#include <stdlib.h>
#include <string.h>

enum { OPT_MODEL = 1, OPT_LINES, OPT_SPECIAL, OPT_SKIP_SPECIAL, OPT_BINARY, OPT_COUNT, OPT_PIECES, OPT_JSON };

static const k3_opt table[] = {
    {"model", 'm', "MODEL", OPT_MODEL, "the checkpoint folder (default: $K3_MODEL)"},
    {"lines", 'l', NULL, OPT_LINES, "encode, chat: each line is a text or request of its own, without its newline"},
    {"special", 's', NULL, OPT_SPECIAL, "encode: names of special ids in the text become those ids"},
    {"count", 'c', NULL, OPT_COUNT, "encode, chat: print the number of ids instead of the ids"},
    {"pieces", 'p', NULL, OPT_PIECES, "encode: print each piece of the pre-split with its ids"},
    {"skip-special", 0, NULL, OPT_SKIP_SPECIAL, "decode: write nothing for special ids"},
    {"binary", 'b', NULL, OPT_BINARY, "ids are 32-bit little-endian words"},
    {"json", 0, NULL, OPT_JSON, "encode, chat, ids: the output as JSON"},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] =
    "usage: k3-tok encode [-m MODEL] [-l] [--special] [--binary | --count | --pieces | --json] <text >ids\n"
    "       k3-tok decode [-m MODEL] [--skip-special] [--binary] <ids >text\n"
    "       k3-tok chat   [-m MODEL] [-l] [--binary | --count | --json] <request.json >ids\n"
    "       k3-tok ids    [-m MODEL] [--json]\n"
    "\n"
    "Text to ids and back. encode makes standard input one sequence of ids on one line;\n"
    "decode writes the text of ids as they come; chat makes the prompt for a list of\n"
    "messages; ids lists the special ids.\n";

/* Bits of the options that were given, to be checked against the verb. */
#define BIT(id) K3_OPT_BIT(id)

struct verb {
    const char *name;
    int (*run)(const tok_opts *o, k3_err *err);
    uint64_t allowed;
};

static const struct verb verbs[] = {
    {"encode", tok_encode, BIT(OPT_LINES) | BIT(OPT_SPECIAL) | BIT(OPT_BINARY) | BIT(OPT_COUNT) | BIT(OPT_PIECES) | BIT(OPT_JSON)},
    {"decode", tok_decode, BIT(OPT_SKIP_SPECIAL) | BIT(OPT_BINARY)},
    {"chat", tok_chat, BIT(OPT_LINES) | BIT(OPT_BINARY) | BIT(OPT_COUNT) | BIT(OPT_JSON)},
    {"ids", tok_ids, BIT(OPT_JSON)},
};

/* Every option given must be one of the verb's, and at most one may choose the form of the output. */
static int check_options(const struct verb *verb, uint64_t given, k3_err *err)
{
    static const int forms[] = {OPT_BINARY, OPT_COUNT, OPT_PIECES, OPT_JSON};
    int form = 0;
    int status = k3_opt_only(table, given, verb->allowed | BIT(OPT_MODEL), verb->name, err);
    if (status)
        return status;
    for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (!(given & BIT(forms[i])))
            continue;
        if (form)
            return k3_fail(err, K3_EUSAGE, "--%s and --%s exclude each other", k3_opt_name(table, form), k3_opt_name(table, forms[i]));
        form = forms[i];
    }
    if (form == OPT_BINARY && (given & BIT(OPT_LINES)))
        return k3_fail(err, K3_EUSAGE, "--binary and --lines exclude each other: binary ids have no line ends");
    return 0;
}

static int find_verb(const k3_args *args, const struct verb **verb, k3_err *err)
{
    if (!args->noperands)
        return k3_fail(err, K3_EUSAGE, "what to do: encode, decode, chat or ids; try --help");
    if (args->noperands > 1)
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many; text and ids come on standard input", args->operands[1]);
    for (unsigned i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(args->operands[0], verbs[i].name)) {
            *verb = &verbs[i];
            return 0;
        }
    return k3_fail(err, K3_EUSAGE, "%s: unknown verb; encode, decode, chat or ids", args->operands[0]);
}

static int run(const k3_args *args, uint64_t given, const char *model, k3_err *err)
{
    const struct verb *verb = NULL;
    int status = find_verb(args, &verb, err);
    if (!status)
        status = check_options(verb, given, err);
    if (!status)
        status = k3_opt_model(&model, err);
    if (status)
        return status;
    const tok_opts o = {
        .model = model,
        .special = given & BIT(OPT_SPECIAL),
        .skip_special = given & BIT(OPT_SKIP_SPECIAL),
        .lines = given & BIT(OPT_LINES),
        .binary = given & BIT(OPT_BINARY),
        .count = given & BIT(OPT_COUNT),
        .pieces = given & BIT(OPT_PIECES),
        .json = given & BIT(OPT_JSON),
    };
    return verb->run(&o, err);
}

static int take_option(void *arg, int id, const char *value, k3_err *err)
{
    const char **model = arg;
    (void)err;
    if (id == OPT_MODEL)
        *model = value;
    return 0;
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table};
    const char *model = NULL;
    uint64_t given = 0;
    bool done;
    k3_prog_start("k3-tok");
    int status = k3_opt_all(&args, usage, take_option, &model, &given, &done, &err);
    if (!status && !done)
        status = run(&args, given, model, &err);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
