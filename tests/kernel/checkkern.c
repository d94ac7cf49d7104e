/* checkkern - every kernel of every instruction set against the contract, bit for bit.
 *
 * Sizes run over every tail and block edge, values over denormals, zeros,
 * extremes and infinities; arrays lie between guard pages. Prints what failed
 * with its parameters, then "N passed, N failed, N skipped".
 */
#include "cases.h"

enum { OPT_ISA = 1, OPT_KERNEL, OPT_SEED, OPT_BENCH };
static const k3_opt options[] = {
    {"isa", 'i', "NAME", OPT_ISA, "only this instruction set"},
    {"kernel", 'k', "NAME", OPT_KERNEL, "only this kernel"},
    {"seed", 's', "N", OPT_SEED, "seed of the random values and sizes (1)"},
    {"bench", 'b', NULL, OPT_BENCH, "time each kernel at one of the model's shapes instead of checking"},
    K3_COMMON_OPTS,
    {NULL, 0, NULL, 0, NULL},
};

typedef struct {
    const char *isa, *kernel;
    uint64_t seed;
    bool bench;
} settings;

/* 0 to go on, else the exit status + 1. */
static int read_options(int argc, char **argv, settings *s, k3_err *err)
{
    k3_args args = {.argc = argc, .argv = argv, .table = options};
    for (int id; (id = k3_opt_next(&args, err)) != K3_OPT_DONE;) {
        if (id == K3_OPT_BAD || (id == OPT_SEED && k3_num_u64(args.value, "--seed", 0, UINT64_MAX, &s->seed, err)))
            return 1 + k3_report_error(err);
        if (id == K3_OPT_HELP) {
            k3_opt_help(stdout,
                        "usage: checkkern [options]\nChecks every kernel against the contract, bit for bit.\n",
                        options);
            return 1;
        }
        if (id == K3_OPT_VERSION) {
            k3_print_version();
            return 1;
        }
        s->isa = id == OPT_ISA ? args.value : s->isa;
        s->kernel = id == OPT_KERNEL ? args.value : s->kernel;
        s->bench |= id == OPT_BENCH;
    }
    return 0;
}

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
    int stop = read_options(argc, argv, &s, &err), passed = 0, failed = 0;
    if (stop)
        return k3_prog_end(stop - 1);
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
