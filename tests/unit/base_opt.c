/* SPDX-License-Identifier: Apache-2.0 */
/* Options: what getopt users expect, and nothing guessed. */
#include "k3_base.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST = 1, SECOND = 2 };

struct options {
    const char *model;
    bool lines, batched, huge;
    int part, threads;
    uint64_t gen, memory, tile;
    double seconds;
    char taken[64];
};

static int take(void *options, const char *value, k3_err *err)
{
    struct options *o = options;
    if (!strcmp(value, "bad"))
        return k3_fail(err, K3_EUSAGE, "--list: bad");
    snprintf(o->taken + strlen(o->taken), sizeof o->taken - strlen(o->taken), "<%s>", value);
    return 0;
}

#define AT(field) offsetof(struct options, field)
static const k3_opt table[] = {
    {"gen", 0, "N", "ids to make", K3_OPT_U64, AT(gen), 0, 1000},
    {"model", 'm', "DIR", "the checkpoint", K3_OPT_TEXT, AT(model)},
    {"lines", 'l', NULL, "each line by itself\nand so on", K3_OPT_FLAG, AT(lines), .verbs = FIRST},
    {"unbatched", 'u', NULL, "one by one", K3_OPT_NO_FLAG, AT(batched)},
    {"huge", 0, "on|off", "huge pages", K3_OPT_ON_OFF, AT(huge), .verbs = FIRST | SECOND},
    {"part", 'p', "PART", "of a layer", K3_OPT_WORD, AT(part), .words = "attn|mlp|moe"},
    {"threads", 't', "N", "threads", K3_OPT_INT, AT(threads), 1, 1024},
    {"memory", 0, "SIZE", "memory", K3_OPT_SIZE, AT(memory), 1},
    {"tile", 0, "SIZE", "a tile", K3_OPT_SIZE, AT(tile), 4096, 16 << 20},
    {"seconds", 0, "S", "time", K3_OPT_DOUBLE, AT(seconds), .low = 0.5, .high = 2},
    {"list", 0, "X", "anything", K3_OPT_CALL, .take = take},
    K3_COMMON_OPTS,
    {0},
};

/* Parses a command line whose words are separated by blanks, "" for an empty one. */
struct line {
    struct options o;
    k3_args args;
    bool done;
    int status;
    k3_err err;
    char text[256], *argv[32];
};

static void parse(struct line *l, const char *text)
{
    *l = (struct line){.o = {.batched = true, .huge = true, .part = -1}, .argv = {(char *)"prog"}};
    snprintf(l->text, sizeof l->text, "%s", text);
    l->args = (k3_args){.argc = 1, .argv = l->argv, .table = table, .usage = "usage: prog\n"};
    for (char *w = strtok(l->text, " "); w; w = strtok(NULL, " "))
        l->argv[l->args.argc++] = !strcmp(w, "\"\"") ? (char *)"" : w;
    k3_verbosity = 0;
    l->status = k3_opt_parse(&l->args, &l->o, &l->done, &l->err);
}

/* model, gen, lines and the operands, as "m=dir g=5 l | a b". */
static const char *shown(struct line *l)
{
    static char out[512];
    size_t n = 0;
    if (l->o.model)
        n += (size_t)snprintf(out + n, sizeof out - n, "m=%s ", l->o.model);
    if (k3_opt_given(&l->args, "gen"))
        n += (size_t)snprintf(out + n, sizeof out - n, "g=%d ", (int)l->o.gen);
    n += (size_t)snprintf(out + n, sizeof out - n, l->o.lines ? "l |" : "|");
    for (int i = 0; i < l->args.noperands; i++)
        n += (size_t)snprintf(out + n, sizeof out - n, " %s", l->args.operands[i]);
    return out;
}

Test(base_opt, command_lines)
{
    static const struct {
        const char *line, *want;
    } cases[] = {
        {"", "|"},
        {"a b c", "| a b c"},
        {"--gen 5 a", "g=5 | a"},
        {"--gen=5 a", "g=5 | a"},
        {"--model= a", "m= | a"},
        {"--model=a=b", "m=a=b |"},
        {"--model --gen", "m=--gen |"}, /* a value may look like an option */
        {"--model -1", "m=-1 |"},
        {"--model \"\"", "m= |"},
        {"-m dir", "m=dir |"},
        {"-mdir", "m=dir |"},
        {"-m=dir", "m==dir |"},
        {"-l", "l |"},
        {"-lm dir", "m=dir l |"},
        {"-lmdir x", "m=dir l | x"},
        {"-ll", "l |"},
        {"-lvl", "l |"},
        {"--gen 1 --gen 2", "g=2 |"}, /* the last one counts */
        {"a -l b --gen 1 c", "g=1 l | a b c"},
        {"-- -l --gen", "| -l --gen"},
        {"a -- -- b", "| a -- b"},
        {"-l - -", "l | - -"},
    };
    struct line l;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(&l, cases[i].line);
        cr_expect(!l.status && !l.done, "\"%s\": %s", cases[i].line, l.err.text);
        cr_expect_str_eq(shown(&l), cases[i].want, "\"%s\": \"%s\" instead of \"%s\"", cases[i].line, shown(&l), cases[i].want);
    }
}

Test(base_opt, misuse)
{
    static const struct {
        const char *line, *want;
    } cases[] = {
        {"--gem 5", "--gem: unknown option; try --help"},
        {"--ge 5", "--ge: unknown option; try --help"}, /* no abbreviations: they break when an option is added */
        {"--gen5", "--gen5: unknown option; try --help"},
        {"--genx=5", "--genx=5: unknown option; try --help"},
        {"--=5", "--=5: unknown option; try --help"},
        {"--lines=yes", "--lines=yes: takes no value; try --help"},
        {"--gen", "--gen: needs a value; try --help"},
        {"a -m", "-m: needs a value; try --help"},
        {"-x", "-x: unknown option; try --help"},
        {"-lx", "-x: unknown option; try --help"},
        {"-l-", "--: unknown option; try --help"},
        {"--gen 1001", "--gen: \"1001\" is not a whole number from 0 to 1000"},
        {"--gen \"\"", "--gen: \"\" is not a whole number from 0 to 1000"},
        {"-t 0", "--threads: \"0\" is not a whole number from 1 to 1024"},
        {"-t1025", "--threads: \"1025\" is not a whole number from 1 to 1024"},
        {"--huge On", "--huge: \"On\" is neither on nor off"},
        {"--huge \"\"", "--huge: \"\" is neither on nor off"},
        {"-p mo", "--part: \"mo\" is none of attn, mlp and moe"},
        {"-p attn|mlp", "--part: \"attn|mlp\" is none of attn, mlp and moe"},
        {"--memory 0", "--memory: \"0\" is too small: at least 1 byte"},
        {"--memory 1X", "--memory: \"1X\" is not a size such as 800M, 8G or 1.5Gi"},
        {"--tile 4095", "--tile: \"4095\" is outside 4Ki..16Mi"},
        {"--tile 16777217", "--tile: \"16777217\" is outside 4Ki..16Mi"},
        {"--seconds 0.4", "--seconds: \"0.4\" is not a number from 0.5 to 2"},
        {"--list bad", "--list: bad"},
    };
    struct line l;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parse(&l, cases[i].line);
        cr_expect_eq(l.status, K3_EUSAGE, "\"%s\"", cases[i].line);
        cr_expect(!l.done);
        cr_expect_str_eq(l.err.text, cases[i].want, "\"%s\": \"%s\"", cases[i].line, l.err.text);
    }
}

/* Every type stores what its row says, where its row says, and nothing else. */
Test(base_opt, values)
{
    struct line l;
    parse(&l, "-u --huge off -p moe -t 1024 --memory 1 --tile 16Mi --seconds 2 --list a --list=b");
    cr_assert_eq(l.status, 0, "%s", l.err.text);
    cr_expect(!l.o.batched && !l.o.huge && l.o.part == 2 && l.o.threads == 1024 && l.o.memory == 1);
    cr_expect(l.o.tile == 16 << 20 && l.o.seconds >= 2 && !strcmp(l.o.taken, "<a><b>"));
    cr_expect(!l.o.lines && !l.o.model && !l.o.gen);
    parse(&l, "-p attn --huge on --tile 4Ki --memory 18446744073709551615");
    cr_expect(!l.status && l.o.part == 0 && l.o.huge && l.o.batched && l.o.tile == 4096 && l.o.memory == UINT64_MAX);
}

Test(base_opt, verbosity_is_counted)
{
    struct line l;
    parse(&l, "-v --verbose -v");
    cr_expect_eq(k3_verbosity, 3);
    parse(&l, "-vv -q");
    cr_expect_eq(k3_verbosity, -1);
    parse(&l, "-q -v");
    cr_expect_eq(k3_verbosity, 1, "the later one wins");
}

/* What was given is told apart from what was not; options of other verbs and rivals are refused. */
Test(base_opt, given)
{
    struct line l;
    k3_err err = {0};
    parse(&l, "--gen 0 -l");
    cr_expect(k3_opt_given(&l.args, "gen") && k3_opt_given(&l.args, "lines") && !k3_opt_given(&l.args, "model"));
    cr_expect(!k3_opt_given(&l.args, "help") && !k3_opt_given(&l.args, "none"));
    cr_expect_eq(k3_opt_only(&l.args, FIRST, "verb", &err), 0);
    cr_expect_eq(k3_opt_only(&l.args, SECOND, "verb", &err), K3_EUSAGE);
    cr_expect_str_eq(err.text, "--lines does not go with verb; try --help");
    cr_expect_eq(k3_opt_one_of(&l.args, "gen|model|part", &err), 0);
    cr_expect_eq(k3_opt_one_of(&l.args, "model|lines|gen", &err), K3_EUSAGE);
    cr_expect_str_eq(err.text, "--lines and --gen exclude each other");
}

Test(base_opt, lists)
{
    const char *list = "a,,bcdefg";
    char word[6];
    cr_expect(k3_opt_word(&list, ',', word, sizeof word) && !strcmp(word, "a"));
    cr_expect(k3_opt_word(&list, ',', word, sizeof word) && !strcmp(word, ""));
    cr_expect(k3_opt_word(&list, ',', word, sizeof word) && !strcmp(word, "bc..."), "cut");
    cr_expect(!k3_opt_word(&list, ',', word, sizeof word));
    cr_expect(k3_opt_find("lru|layers", "layers") == 1 && k3_opt_find("lru|layers", "lru") == 0);
    cr_expect(k3_opt_find("lru|layers", "l") == -1 && k3_opt_find("lru|layers", "") == -1);
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

Test(base_opt, model)
{
    k3_err err = {0};
    const char *model = "", *given = "dir";
    setenv("K3_MODEL", "other", 1);
    cr_expect(!k3_opt_model(&given, &err) && !strcmp(given, "dir"));
    cr_expect_eq(k3_opt_model(&model, &err), K3_EUSAGE, "an empty -m is no wish for the default");
    model = NULL;
    cr_expect(!k3_opt_model(&model, &err) && !strcmp(model, "other"));
    unsetenv("K3_MODEL");
    model = NULL;
    cr_expect_eq(k3_opt_model(&model, &err), K3_EUSAGE);
}
