/* SPDX-License-Identifier: Apache-2.0 */
/* k3-trace: record expert routing once, replay it at any cache size and policy. */
#include "trace.h"

#include <string.h>

static const command commands[] = {
    {"info", "what a trace holds: requests, experts, reuse, working set, the best possible hit rate", cmd_info},
    {"cat", "the choices as text or JSON lines", cmd_cat},
    {"hist", "uses of every expert", cmd_hist},
    {"cut", "some steps, layers or phases of a trace", cmd_cut},
    {"merge", "several traces of one model as one", cmd_merge},
    {"import", "headerless (layer, expert) pairs, CSV or oracleGeneral to a trace", cmd_import},
    {"export", "a trace to those formats", cmd_export},
    {"sim", "hit rates by cache policy and size, bytes and seconds a token", cmd_sim},
    {"plot", "miss-ratio curves and the use of layers as SVG", cmd_plot},
    {"synth", "synthetic routing", cmd_synth},
    {"verify", "replay a run's own cache and compare with what it recorded", cmd_verify},
    {0},
};

static const k3_opt table[] = {K3_COMMON_OPTS, {0}};

static const char usage[] =
    "usage: k3-trace COMMAND [OPTION ...] [TRACE ...]\n"
    "\n"
    "Traces of expert routing (.k3t, written by k3-decode --trace): what they hold, and\n"
    "what any expert cache would have done. A TRACE is a file or - for standard input.\n";

static int run(int argc, char **argv, k3_err *err)
{
    const char *name = argc > 1 ? argv[1] : "";
    if (!*name)
        return k3_fail(err, K3_EUSAGE,
                       "which command: info, cat, hist, cut, merge, import, export, sim, plot, synth or "
                       "verify; try --help");
    for (const command *c = commands; c->name; c++)
        if (!strcmp(name, c->name))
            return c->run(argc - 1, argv + 1, err);
    if (name[0] != '-')
        return k3_fail(err, K3_EUSAGE, "%s: unknown command; try --help", name);
    k3_args args = {.argc = argc, .argv = argv, .table = table, .usage = usage};
    bool done;
    int status = k3_opt_parse(&args, NULL, &done, err);
    if (!status && !done)
        return k3_fail(err, K3_EUSAGE, "%s: a command comes first; try --help", name);
    if (!status && k3_opt_given(&args, "help")) {
        printf("\nCommands (k3-trace COMMAND --help for each):\n");
        for (const command *c = commands; c->name; c++)
            printf("  %-8s %s\n", c->name, c->line);
    }
    return status;
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_prog_start("k3-trace");
    int status = run(argc, argv, &err);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
