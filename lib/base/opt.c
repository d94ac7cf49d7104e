/* SPDX-License-Identifier: Apache-2.0 */
/* Options from a table, so that parsing, help and completion cannot disagree. */
#include "k3_base.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- lists of words -------------------------------------------------------- */

bool k3_opt_word(const char **list, char separator, char *buf, size_t size)
{
    if (!*list)
        return false;
    const char *end = strchr(*list, separator);
    size_t n = end ? (size_t)(end - *list) : strlen(*list);
    if (n < size)
        snprintf(buf, size, "%.*s", (int)n, *list);
    else /* no word that is known is that long: what is left of it must not pass for one */
        snprintf(buf, size, "%.*s...", (int)(size - 4), *list);
    *list = end ? end + 1 : NULL;
    return true;
}

int k3_opt_find(const char *words, const char *word)
{
    char w[64];
    for (int i = 0; k3_opt_word(&words, '|', w, sizeof w); i++)
        if (!strcmp(w, word))
            return i;
    return -1;
}

/* K3_EUSAGE with the words: --part: "x" is none of attn, mlp, router and moe. */
static int not_a_word(const char *shown, const char *value, const char *words, k3_err *err)
{
    char list[256], w[64];
    size_t n = 0;
    list[0] = 0;
    while (k3_opt_word(&words, '|', w, sizeof w) && n < sizeof list)
        n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", !n ? "" : words ? ", " : " and ", w);
    return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is none of %s", shown, value, list);
}

/* ---- one option ------------------------------------------------------------- */

static bool takes_value(const k3_opt *o)
{
    return o->arg != NULL;
}

/* Stores what row `o` makes of `value`. */
static int store(const k3_opt *o, const char *value, void *options, k3_err *err)
{
    void *to = (char *)options + o->at;
    char shown[64];
    uint64_t n = 0, most = o->type == K3_OPT_INT ? INT_MAX : UINT64_MAX;
    int status = 0, word;
    snprintf(shown, sizeof shown, "--%s", o->name);
    most = o->max ? o->max : most;
    switch (o->type) {
    case K3_OPT_FLAG:
    case K3_OPT_NO_FLAG:
        *(bool *)to = o->type == K3_OPT_FLAG;
        return 0;
    case K3_OPT_ON_OFF:
        if ((word = k3_opt_find("off|on", value)) < 0)
            return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is neither on nor off", shown, value);
        *(bool *)to = word;
        return 0;
    case K3_OPT_TEXT:
        *(const char **)to = value;
        return 0;
    case K3_OPT_WORD:
        if ((word = k3_opt_find(o->words, value)) < 0)
            return not_a_word(shown, value, o->words, err);
        *(int *)to = word;
        return 0;
    case K3_OPT_INT:
        if (!(status = k3_num_u64(value, shown, o->min, most, &n, err)))
            *(int *)to = (int)n;
        return status;
    case K3_OPT_U64:
        return k3_num_u64(value, shown, o->min, most, to, err);
    case K3_OPT_SIZE:
        return k3_num_size_within(value, shown, o->min, most, to, err);
    case K3_OPT_DOUBLE:
        return k3_num_double(value, shown, o->low, o->high, to, err);
    case K3_OPT_CALL:
        return o->take(options, value, err);
    case K3_OPT_VERBOSE:
        k3_verbosity = k3_verbosity < 0 ? 1 : k3_verbosity + 1;
        return 0;
    case K3_OPT_QUIET:
        k3_verbosity = -1;
        return 0;
    case K3_OPT_HELP:
    case K3_OPT_VERSION:
        break; /* end the command line: parse() */
    }
    return 0;
}

/* ---- a command line ----------------------------------------------------------- */

struct parser {
    k3_args *args;
    void *options;
    int next;            /* in argv */
    const k3_opt *last;  /* --help or --version, once it was met */
};

static int misuse(k3_err *err, const char *what, const char *arg)
{
    return k3_fail(err, K3_EUSAGE, "%s: %s; try --help", arg, what);
}

/* Row `o` as it stands in argv as `arg`, with the value that is attached to it or NULL. */
static int take(struct parser *p, const k3_opt *o, const char *arg, const char *value, k3_err *err)
{
    k3_args *a = p->args;
    if (takes_value(o) && !value) {
        if (p->next >= a->argc)
            return misuse(err, "needs a value", arg);
        value = a->argv[p->next++];
    }
    a->given[o - a->table] = true;
    if (o->type == K3_OPT_HELP || o->type == K3_OPT_VERSION)
        p->last = o;
    return store(o, value, p->options, err);
}

static int long_option(struct parser *p, const char *arg, k3_err *err)
{
    const char *name = arg + 2, *eq = strchr(name, '=');
    size_t len = eq ? (size_t)(eq - name) : strlen(name);
    const k3_opt *o = p->args->table;
    while (o->name && (strlen(o->name) != len || strncmp(o->name, name, len)))
        o++;
    if (!o->name)
        return misuse(err, "unknown option", arg);
    if (eq && !takes_value(o))
        return misuse(err, "takes no value", arg);
    return take(p, o, arg, eq ? eq + 1 : NULL, err);
}

/* -x, or several in one word, the last with its value. */
static int short_options(struct parser *p, const char *arg, k3_err *err)
{
    int status = 0;
    for (const char *at = arg + 1; *at && !status && !p->last; at++) {
        const char shown[3] = {'-', *at, 0};
        const k3_opt *o = p->args->table;
        while (o->name && (!o->letter || o->letter != (unsigned char)*at))
            o++;
        if (!o->name)
            return misuse(err, "unknown option", shown);
        bool attached = takes_value(o) && at[1];
        status = take(p, o, shown, attached ? at + 1 : NULL, err);
        if (attached)
            break;
    }
    return status;
}

int k3_opt_parse(k3_args *a, void *options, bool *done, k3_err *err)
{
    struct parser p = {.args = a, .options = options, .next = 1};
    bool only_operands = false;
    int status = 0;
    memset(a->given, 0, sizeof a->given);
    a->noperands = 0;
    a->operands = a->argv + 1; /* gathered from the front; they never overtake p.next */
    while (p.next < a->argc && !status && !p.last) {
        char *arg = a->argv[p.next++];
        if (only_operands || arg[0] != '-' || !arg[1])
            a->operands[a->noperands++] = arg;
        else if (!strcmp(arg, "--"))
            only_operands = true;
        else
            status = arg[1] == '-' ? long_option(&p, arg, err) : short_options(&p, arg, err);
    }
    *done = !status && p.last;
    if (*done && p.last->type == K3_OPT_HELP)
        k3_opt_help(stdout, a->usage, a->table);
    else if (*done)
        k3_print_version();
    return status;
}

/* ---- what was given ------------------------------------------------------------- */

bool k3_opt_given(const k3_args *a, const char *name)
{
    for (const k3_opt *o = a->table; o->name; o++)
        if (!strcmp(o->name, name))
            return a->given[o - a->table];
    return false;
}

int k3_opt_only(const k3_args *a, uint32_t bit, const char *verb, k3_err *err)
{
    for (const k3_opt *o = a->table; o->name; o++)
        if (a->given[o - a->table] && o->verbs && !(o->verbs & bit))
            return k3_fail(err, K3_EUSAGE, "--%s does not go with %s; try --help", o->name, verb);
    return 0;
}

int k3_opt_one_of(const k3_args *a, const char *names, k3_err *err)
{
    char name[64], first[64] = "";
    while (k3_opt_word(&names, '|', name, sizeof name)) {
        if (!k3_opt_given(a, name))
            continue;
        if (first[0])
            return k3_fail(err, K3_EUSAGE, "--%s and --%s exclude each other", first, name);
        memcpy(first, name, sizeof first);
    }
    return 0;
}

int k3_opt_model(const char **model, k3_err *err)
{
    if (!*model)
        *model = getenv("K3_MODEL");
    return *model && **model ? 0 : k3_fail(err, K3_EUSAGE, "which model: give -m MODEL or set K3_MODEL");
}

void k3_opt_help(FILE *to, const char *usage, const k3_opt *table)
{
    fputs(usage, to);
    fputs("\nOptions:\n", to);
    for (const k3_opt *o = table; o->name; o++) {
        char left[64];
        if (o->letter)
            snprintf(left, sizeof left, "-%c, --%s%s%s", o->letter, o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        else
            snprintf(left, sizeof left, "    --%s%s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
        const char *help = o->help, *nl;
        fprintf(to, "  %-26s ", left);
        if (strlen(left) > 26)
            fprintf(to, "\n  %-26s ", "");
        while ((nl = strchr(help, '\n'))) {
            fprintf(to, "%.*s\n  %-26s ", (int)(nl - help), help, "");
            help = nl + 1;
        }
        fprintf(to, "%s\n", help);
    }
}
