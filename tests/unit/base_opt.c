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
