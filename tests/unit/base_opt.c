/* Options: what getopt users expect, and nothing guessed. */
#include "k3_base.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { GEN = 1, MODEL, LINES };
static const k3_opt table[] = {
    {"gen", 0, "N", GEN, "ids to make"},
    {"model", 'm', "DIR", MODEL, "the checkpoint"},
    {"lines", 'l', NULL, LINES, "each line by itself\nand so on"},
    K3_COMMON_OPTS,
    {0},
};

/* Runs over a command line and writes "ID=VALUE ... | OPERAND ..." into out. */
static void read_line(char *out, size_t cap, const char *line)
{
    char *copy = strdup(line), *argv[32] = {(char *)"prog"};
    int argc = 1, id;
    size_t n = 0;
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " "))
        argv[argc++] = !strcmp(w, "\"\"") ? (char *)"" : w;
    k3_args a = {.argc = argc, .argv = argv, .table = table};
    k3_err err = {0};
    k3_verbosity = 0;
    while ((id = k3_opt_next(&a, &err)) != K3_OPT_DONE && id != K3_OPT_BAD)
        n += (size_t)snprintf(out + n, cap - n, "%d%s%s ", id, a.value ? "=" : "", a.value ? a.value : "");
    if (id == K3_OPT_BAD)
        snprintf(out + n, cap - n, "BAD %s", err.text);
    else
        n += (size_t)snprintf(out + n, cap - n, "|");
    for (int i = 0; id != K3_OPT_BAD && i < a.noperands; i++)
        n += (size_t)snprintf(out + n, cap - n, " %s", a.operands[i]);
    free(copy);
}

static const struct {
    const char *line, *want;
} cases[] = {
    {"", "|"},
    {"a b c", "| a b c"},
    {"--gen 5 a", "1=5 | a"},
    {"--gen=5 a", "1=5 | a"},
    {"--gen= a", "1= | a"},
    {"--gen=a=b", "1=a=b |"},
    {"--gen --model", "1=--model |"}, /* a value may look like an option */
    {"--gen -1", "1=-1 |"},
    {"--gen \"\"", "1= |"},
    {"-m dir", "2=dir |"},
    {"-mdir", "2=dir |"},
    {"-m=dir", "2==dir |"},
    {"-l", "3 |"},
    {"-lm dir", "3 2=dir |"},
    {"-lmdir x", "3 2=dir | x"},
    {"-ll", "3 3 |"},
    {"-lvl", "3 3 |"},
    {"a -l b --gen 1 c", "3 1=1 | a b c"},
    {"-- -l --gen", "| -l --gen"},
    {"a -- -- b", "| a -- b"},
    {"-l - -", "3 | - -"},
    {"-h", "1001 |"},
    {"--version x", "1002 | x"},
    {"--gem 5", "BAD --gem: unknown option; try --help"},
    {"--ge 5", "BAD --ge: unknown option; try --help"}, /* no abbreviations: they break when an option is added */
    {"--gen5", "BAD --gen5: unknown option; try --help"},
    {"--genx=5", "BAD --genx=5: unknown option; try --help"},
    {"--lines=yes", "BAD --lines=yes: takes no value; try --help"},
    {"--gen", "BAD --gen: needs a value; try --help"},
    {"a -m", "BAD -m: needs a value; try --help"},
    {"-x", "BAD -x: unknown option; try --help"},
    {"-lx", "3 BAD -x: unknown option; try --help"},
    {"-l-", "3 BAD --: unknown option; try --help"},
};

Test(base_opt, command_lines)
{
    char out[1024];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_line(out, sizeof out, cases[i].line);
        cr_expect_str_eq(out, cases[i].want, "\"%s\": \"%s\" instead of \"%s\"", cases[i].line, out, cases[i].want);
    }
}

Test(base_opt, verbosity_is_counted)
{
    char out[256];
    read_line(out, sizeof out, "-v --verbose -v");
    cr_expect(!strcmp(out, "|") && k3_verbosity == 3);
    read_line(out, sizeof out, "-vv -q");
    cr_expect_eq(k3_verbosity, -1);
    read_line(out, sizeof out, "-q -v");
    cr_expect_eq(k3_verbosity, 1, "the later one wins");
}

/* Every row of the table is in the help, aligned, with its letter and its value. */
Test(base_opt, help_shows_the_table)
{
    char *text = NULL;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    k3_opt_help(f, "usage: prog [options]\n", table);
    fclose(f);
    cr_expect(!strncmp(text, "usage: prog [options]\n", 22));
    cr_expect(strstr(text, "\n      --gen N                ids to make\n") != NULL, "%s", text);
    cr_expect(strstr(text, "\n  -m, --model DIR            the checkpoint\n") != NULL, "%s", text);
    cr_expect(strstr(text, "\n  -l, --lines                each line by itself\n                             and so on\n") != NULL, "%s", text);
    cr_expect(strstr(text, "\n  -h, --help ") != NULL && strstr(text, "\n  -q, --quiet ") != NULL);
    free(text);
}

/* ---- all of a command line at once ---- */

static int take(void *arg, int id, const char *value, k3_err *err)
{
    (void)err;
    if (id == GEN)
        return k3_opt_threads(value, arg, err);
    return 0;
}

static int take_all(const char *word, const char *value, uint64_t *given, int *threads, bool *done, k3_err *err)
{
    char *argv[] = {(char *)"prog", (char *)word, (char *)value, NULL};
    k3_args a = {.argc = value ? 3 : word ? 2 : 1, .argv = argv, .table = table};
    *given = 0;
    *threads = -1;
    return k3_opt_all(&a, "usage\n", take, threads, given, done, err);
}

/* What was given is told apart from what was not, and an error of a value ends it all. */
Test(base_opt, all)
{
    uint64_t given;
    int threads;
    bool done;
    k3_err err = {0};
    cr_expect_eq(take_all(NULL, NULL, &given, &threads, &done, &err), 0);
    cr_expect(!given && !done && threads == -1);
    cr_expect_eq(take_all("--gen", "1024", &given, &threads, &done, &err), 0);
    cr_expect(given == K3_OPT_BIT(GEN) && !done && threads == 1024);
    cr_expect_eq(take_all("--gen", "1025", &given, &threads, &done, &err), K3_EUSAGE);
    cr_expect(threads == -1 && strstr(err.text, "--threads: \"1025\""), "%s", err.text);
    cr_expect_eq(take_all("--none", NULL, &given, &threads, &done, &err), K3_EUSAGE);
    cr_expect(!done);
    cr_expect_eq(take_all("-l", NULL, &given, &threads, &done, &err), 0);
    cr_expect_eq(given, K3_OPT_BIT(LINES));
    cr_expect_eq(k3_opt_only(table, given, K3_OPT_BIT(LINES) | K3_OPT_BIT(GEN), "verb", &err), 0);
    cr_expect_eq(k3_opt_only(table, given | K3_OPT_BIT(GEN), K3_OPT_BIT(LINES), "verb", &err), K3_EUSAGE);
    cr_expect_str_eq(err.text, "--gen does not go with verb; try --help");
    cr_expect_str_eq(k3_opt_name(table, LINES), "lines");
}

Test(base_opt, on_off_and_model)
{
    bool on = true;
    k3_err err = {0};
    const char *model = "", *given = "dir";
    cr_expect(!k3_opt_on_off("on", "--x", &on, &err) && on);
    cr_expect(!k3_opt_on_off("off", "--x", &on, &err) && !on);
    cr_expect_eq(k3_opt_on_off("On", "--x", &on, &err), K3_EUSAGE);
    cr_expect_str_eq(err.text, "--x: \"On\" is neither on nor off");
    setenv("K3_MODEL", "other", 1);
    cr_expect(!k3_opt_model(&given, &err) && !strcmp(given, "dir"));
    cr_expect_eq(k3_opt_model(&model, &err), K3_EUSAGE, "an empty -m is no wish for the default");
    model = NULL;
    cr_expect(!k3_opt_model(&model, &err) && !strcmp(model, "other"));
    unsetenv("K3_MODEL");
    model = NULL;
    cr_expect_eq(k3_opt_model(&model, &err), K3_EUSAGE);
}
