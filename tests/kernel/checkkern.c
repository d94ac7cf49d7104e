/* SPDX-License-Identifier: Apache-2.0 */
/* checkkern - every kernel of every instruction set against the contract, bit for bit.
 *
 * Sizes run over every tail and block edge, values over denormals, zeros,
 * extremes and infinities; arrays lie between guard pages. Prints what failed
 * with its parameters, then "N passed, N failed, N skipped".
 */
#include "cases.h"

typedef struct {
    const char *isa, *kernel;
    uint64_t seed;
    bool bench;
} settings;

#define AT(field) offsetof(settings, field)
static const k3_opt options[] = {
    {"isa", 'i', "NAME", "only this instruction set", K3_OPT_TEXT, AT(isa)},
    {"kernel", 'k', "NAME", "only this kernel", K3_OPT_TEXT, AT(kernel)},
    {"seed", 's', "N", "seed of the random values and sizes (1)", K3_OPT_U64, AT(seed)},
    {"bench", 'b', NULL, "time each kernel at one of the model's shapes instead of checking", K3_OPT_FLAG, AT(bench)},
    K3_COMMON_OPTS,
    {0},
};

static void run_table(test *t, const settings *s, const k3_kernels *K, int *passed, int *failed)
{
    for (int i = 0; i < KERNELS; i++) {
        if (s->kernel && strcmp(s->kernel, kernels[i].name) != 0)
            continue;
        t->K = K;
        t->failed = false;
        t->random = s->seed * 1000003 + (uint64_t)i; /* the same cases for every instruction set */
        run_kernel(t, &kernels[i]);
        if (s->bench)
            printf("%-8s %-22s n=%-6zu rows=%-4zu T=%-3zu %12.1f ns\n", K->name, kernels[i].name, t->s.n, t->s.rows,
                   t->s.T, t->ns);
        *passed += !t->failed;
        *failed += t->failed;
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    k3_prog_start("checkkern");
    settings s = {.seed = 1};
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = options,
                    .usage = "usage: checkkern [options]\nChecks every kernel against the contract, bit for bit.\n"};
    int passed = 0, failed = 0;
    bool done;
    if (k3_opt_parse(&args, &s, &done, &err))
        return k3_prog_end(k3_report_error(&err));
    if (done)
        return k3_prog_end(0);
    if (s.isa && !k3_kernels_select(s.isa, &err))
        return k3_report_error(&err);
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    test t = {.bench = s.bench};
    const k3_kernels *K;
    for (int i = 0; (K = k3_kernels_available(i)); i++)
        if (!s.isa || strcmp(s.isa, K->name) == 0)
            run_table(&t, &s, K, &passed, &failed);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return k3_prog_end(failed || !passed);
}
