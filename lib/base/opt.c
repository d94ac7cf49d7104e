/* Options from a table, so that parsing, help and completion cannot disagree. */
#include "k3_base.h"

#include <stdlib.h>
#include <string.h>

static const k3_opt *by_name(const k3_opt *t, const char *name, size_t len)
{
    for (; t->name; t++)
        if (strlen(t->name) == len && !strncmp(t->name, name, len))
            return t;
    return NULL;
}

static const k3_opt *by_letter(const k3_opt *t, int letter)
{
    for (; t->name; t++)
        if (t->letter && t->letter == letter)
            return t;
    return NULL;
}

static int bad(k3_err *err, const char *what, const char *arg)
{
    k3_fail(err, K3_EUSAGE, "%s: %s; try --help", arg, what);
    return K3_OPT_BAD;
}

/* Takes argv[next] as the value of option `name`. */
static int take_value(k3_args *a, const char *name, k3_err *err)
{
    if (a->next >= a->argc)
        return bad(err, "needs a value", name);
    a->value = a->argv[a->next++];
    return 0;
}

static int long_option(k3_args *a, const char *arg, k3_err *err)
{
    const char *name = arg + 2, *eq = strchr(name, '=');
    const k3_opt *o = by_name(a->table, name, eq ? (size_t)(eq - name) : strlen(name));
    if (!o)
        return bad(err, "unknown option", arg);
    if (!o->arg && eq)
        return bad(err, "takes no value", arg);
    if (o->arg && eq)
        a->value = eq + 1;
    else if (o->arg && take_value(a, arg, err))
        return K3_OPT_BAD;
    return o->id;
}

static int short_option(k3_args *a, const char *arg, k3_err *err)
{
    const char shown[3] = {'-', arg[a->cluster], 0};
    const k3_opt *o = by_letter(a->table, (unsigned char)arg[a->cluster]);
    if (!o)
        return bad(err, "unknown option", shown);
    const char *rest = arg + a->cluster + 1;
    if (!o->arg && *rest) {
        a->cluster++;
        a->next--;
        return o->id;
    }
    a->cluster = 0;
    if (o->arg && *rest)
        a->value = rest;
    else if (o->arg && take_value(a, shown, err))
        return K3_OPT_BAD;
    return o->id;
}

static int next_id(k3_args *a, k3_err *err)
{
    while (a->next < a->argc) {
        char *arg = a->argv[a->next++];
        if (a->cluster)
            return short_option(a, arg, err);
        if (arg[0] != '-' || !arg[1]) {
            a->operands[a->noperands++] = arg;
            continue;
        }
        if (!strcmp(arg, "--"))
            break;
        if (arg[1] == '-')
            return long_option(a, arg, err);
        a->cluster = 1;
        return short_option(a, arg, err);
    }
    while (a->next < a->argc)
        a->operands[a->noperands++] = a->argv[a->next++];
    return K3_OPT_DONE;
}

int k3_opt_next(k3_args *a, k3_err *err)
{
    if (!a->operands) {
        /* Operands are gathered in argv from the front; they never overtake `next`. */
        a->operands = a->argv + 1;
        a->next = 1;
    }
    for (;;) {
        a->value = NULL;
        int id = next_id(a, err);
        if (id == K3_OPT_VERBOSE)
            k3_verbosity = k3_verbosity < 0 ? 1 : k3_verbosity + 1;
        else if (id == K3_OPT_QUIET)
            k3_verbosity = -1;
        else
            return id;
    }
}

int k3_opt_all(k3_args *a, const char *usage, int (*take)(void *arg, int id, const char *value, k3_err *err), void *arg,
               uint64_t *given, bool *done, k3_err *err)
{
    int id, status = 0;
    *done = false;
    while (!status && (id = k3_opt_next(a, err)) != K3_OPT_DONE) {
        *done = id == K3_OPT_HELP || id == K3_OPT_VERSION;
        if (id == K3_OPT_HELP)
            k3_opt_help(stdout, usage, a->table);
        if (id == K3_OPT_VERSION)
            k3_print_version();
        if (*done)
            return 0;
        if (id == K3_OPT_BAD)
            return K3_EUSAGE;
        if (given)
            *given |= K3_OPT_BIT(id);
        status = take(arg, id, a->value, err);
    }
    return status;
}

const char *k3_opt_name(const k3_opt *table, int id)
{
    while (table->id != id)
        table++;
    return table->name;
}

int k3_opt_only(const k3_opt *table, uint64_t given, uint64_t allowed, const char *verb, k3_err *err)
{
    for (const k3_opt *o = table; o->name; o++)
        if (o->id < 64 && (given & ~allowed & K3_OPT_BIT(o->id)))
            return k3_fail(err, K3_EUSAGE, "--%s does not go with %s; try --help", o->name, verb);
    return 0;
}

int k3_opt_on_off(const char *value, const char *what, bool *on, k3_err *err)
{
    *on = !strcmp(value, "on");
    if (!*on && strcmp(value, "off"))
        return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is neither on nor off", what, value);
    return 0;
}

int k3_opt_threads(const char *value, int *threads, k3_err *err)
{
    uint64_t n;
    int status = k3_num_u64(value, "--threads", 1, 1024, &n, err);
    if (!status)
        *threads = (int)n;
    return status;
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

void k3_print_version(void)
{
    printf("%s %s\n", k3_prog, K3_VERSION);
}
