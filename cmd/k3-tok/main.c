/* SPDX-License-Identifier: Apache-2.0 */
/* k3-tok: text to ids and ids to text. */
#include "tok.h"

#include <stdlib.h>
#include <string.h>

/* Bits of the verbs, in the order of the table below. */
enum { ENCODE = 1, DECODE = 2, CHAT = 4, IDS = 8, PARSE = 16 };

#define AT(field) offsetof(tok_opts, field)
static const k3_opt table[] = {
    {"model", 'm', "MODEL", "the checkpoint folder (default: $K3_MODEL)", K3_OPT_TEXT, AT(model)},
    {"lines", 'l', NULL, "each line is a text, a request or (decode) a text's ids, without its newline", K3_OPT_FLAG, AT(lines),
     .verbs = ENCODE | CHAT | DECODE},
    {"special", 's', NULL, "encode: names of special ids in the text become those ids", K3_OPT_FLAG, AT(special), .verbs = ENCODE},
    {"count", 'c', NULL, "encode, chat: print the number of ids instead of the ids", K3_OPT_FLAG, AT(count), .verbs = ENCODE | CHAT},
    {"pieces", 'p', NULL, "encode: print each piece of the pre-split with its ids", K3_OPT_FLAG, AT(pieces), .verbs = ENCODE},
    {"skip-special", 0, NULL, "decode: write nothing for special ids", K3_OPT_FLAG, AT(skip_special), .verbs = DECODE},
    {"binary", 'b', NULL, "ids are 32-bit little-endian words", K3_OPT_FLAG, AT(binary), .verbs = ENCODE | DECODE | CHAT},
    {"json", 0, NULL, "the output as JSON; decode: a string for each line of ids", K3_OPT_FLAG, AT(json),
     .verbs = ENCODE | DECODE | CHAT | IDS | PARSE},
    {"only", 0, "WHAT", "parse: the text of one channel: thinking, response or tools", K3_OPT_WORD, AT(only),
     .words = "thinking|response|tools", .verbs = PARSE},
    {"no-thinking", 0, NULL, "parse: the answer begins in the response, not in the thinking", K3_OPT_FLAG, AT(no_thinking), .verbs = PARSE},
    K3_COMMON_OPTS,
    {0},
};

static const char usage[] =
    "usage: k3-tok encode [-m MODEL] [-l] [--special] [--binary | --count | --pieces | --json] <text >ids\n"
    "       k3-tok decode [-m MODEL] [--skip-special] [--binary | -l | --json] <ids >text\n"
    "       k3-tok chat   [-m MODEL] [-l] [--binary | --count | --json] <request.json >ids\n"
    "       k3-tok parse  [-m MODEL] [--no-thinking] [--json | --only WHAT] <ids >messages\n"
    "       k3-tok ids    [-m MODEL] [--json]\n"
    "\n"
    "Text to ids and back. encode makes standard input one sequence of ids on one line;\n"
    "decode writes the text of ids as they come; chat makes the prompt for a list of\n"
    "messages; parse takes an answer apart again; ids lists the special ids.\n";

struct verb {
    const char *name;
    int (*run)(const tok_opts *o, k3_err *err);
};

static const struct verb verbs[] = {{"encode", tok_encode}, {"decode", tok_decode}, {"chat", tok_chat}, {"ids", tok_ids}, {"parse", tok_parse}};

/* Every option given must be one of the verb's, and at most one may choose the form of the output. */
static int check_options(const k3_args *args, const struct verb *verb, const tok_opts *o, k3_err *err)
{
    int status = k3_opt_only(args, 1u << (verb - verbs), verb->name, err);
    if (!status)
        status = k3_opt_one_of(args, "binary|count|pieces|json|only", err);
    if (!status && o->binary && o->lines)
        return k3_fail(err, K3_EUSAGE, "--binary and --lines exclude each other: binary ids have no line ends");
    return status;
}

static int find_verb(const k3_args *args, const struct verb **verb, k3_err *err)
{
    if (!args->noperands)
        return k3_fail(err, K3_EUSAGE, "what to do: encode, decode, chat, parse or ids; try --help");
    if (args->noperands > 1)
        return k3_fail(err, K3_EUSAGE, "%s: one operand too many; text and ids come on standard input", args->operands[1]);
    for (unsigned i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(args->operands[0], verbs[i].name)) {
            *verb = &verbs[i];
            return 0;
        }
    return k3_fail(err, K3_EUSAGE, "%s: unknown verb; encode, decode, chat, parse or ids", args->operands[0]);
}

static int run(const k3_args *args, tok_opts *o, k3_err *err)
{
    const struct verb *verb = NULL;
    int status = find_verb(args, &verb, err);
    if (!status)
        status = check_options(args, verb, o, err);
    if (!status)
        status = k3_opt_model(&o->model, err);
    return status ? status : verb->run(o, err);
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    tok_opts o = {.only = -1};
    bool done;
    k3_prog_start("k3-tok");
    int status = k3_opt_parse(&args, &o, &done, &err);
    if (!status && !done)
        status = run(&args, &o, &err);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
