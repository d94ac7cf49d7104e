/* checkkern - every kernel of every instruction set against the contract, bit for bit.
 *
 * Sizes run over every tail and block edge, values over denormals, zeros,
 * extremes and infinities; arrays lie between guard pages. Prints what failed
 * with its parameters, then "N passed, N failed, N skipped".
 */
#include <signal.h>
#include <unistd.h>

#include "checks.h"

/* Which sizes a kernel is run over. */
enum { VECTOR, MATRIX, CHAIN, CHAINS, CONV, HEAD };

static const struct kernel {
    const char *name;
    void (*check)(test *);
    int sizes;
    shape measured; /* for --bench */
} kernels[] = {
    {"mm_bf16", check_mm_bf16, MATRIX, {7168, 96, 1}},
    {"mm_f32", check_mm_f32, MATRIX, {576, 512, 48}},
    {"mm_mxfp4", check_mm_mxfp4, MATRIX, {3584, 192, 1}},
    {"mxfp4_split", check_mxfp4_split, VECTOR, {3584, 1, 1}},
    {"mxfp4_decode", check_mxfp4_decode, VECTOR, {3584, 1, 1}},
    {"dot", check_dot, VECTOR, {7168, 1, 1}},
    {"tmm_bf16", check_tmm_bf16, CHAIN, {512, 128, 1}},
    {"tmm_f32", check_tmm_f32, CHAIN, {512, 128, 1}},
    {"tmm_f32_multi", check_tmm_f32_multi, CHAINS, {512, 128, 48}},
    {"widen_bf16", check_widen_bf16, VECTOR, {7168, 1, 1}},
    {"rmsnorm", check_rmsnorm, VECTOR, {7168, 1, 1}},
    {"l2norm", check_l2norm, VECTOR, {128, 1, 1}},
    {"situ", check_situ, VECTOR, {3072, 1, 1}},
    {"silu", check_silu, VECTOR, {3072, 1, 1}},
    {"exp", check_exp, VECTOR, {3072, 1, 1}},
    {"tanh", check_tanh, VECTOR, {3072, 1, 1}},
    {"sigmoid", check_sigmoid, VECTOR, {3072, 1, 1}},
    {"mul_sigmoid", check_mul_sigmoid, VECTOR, {12288, 1, 1}},
    {"decay", check_decay, VECTOR, {12288, 1, 1}},
    {"conv_silu", check_conv_silu, CONV, {12288, 4, 1}},
    {"max", check_max, VECTOR, {8192, 1, 1}},
    {"exp_sum", check_exp_sum, VECTOR, {8192, 1, 1}},
    {"kda_step", check_kda_step, HEAD, {128, 1, 1}},
    {"axpy, add, scale, mul", check_arithmetic, VECTOR, {7168, 1, 1}},
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static const char *const value_names[KINDS] = {"ordinary", "small", "special", "infinite", "any"};

static void run_case(test *t, const struct kernel *k, size_t n, size_t rows, size_t T)
{
    if (t->failed)
        return;
    t->s = (shape){n, rows, T};
    t->values = t->bench ? ORDINARY : (int)(next(t) >> 8) % KINDS;
    t->arena.used = 0;
    snprintf(now, sizeof now, "%s %s n=%zu rows=%zu T=%zu values=%s random=%#llx", t->K->name, k->name, n, rows, T,
             value_names[t->values], (unsigned long long)t->random);
    k->check(t);
    int broken = guard_broken(&t->arena);
    if (broken && !t->failed) {
        t->failed = true;
        printf("FAIL %s: wrote outside array %d\n", now, broken);
    }
}

static void run_vectors(test *t, const struct kernel *k)
{
    static const size_t model[] = {512, 576, 1536, 3072, 3584, 7168, 12288};
    for (size_t n = 1; n <= 130; n++)
        for (int values = 0; values < 4; values++)
            run_case(t, k, n, 1, 1);
    for (size_t i = 0; i < sizeof model / sizeof *model; i++)
        run_case(t, k, model[i], 1, 1);
}

/* Every tail, every T, the model's lengths, and the edges of all blockings. */
static void run_matrices(test *t, const struct kernel *k)
{
    static const size_t edge[] = {255, 256, 257, 511, 513, 1025}, rows[] = {23, 24, 25, 47, 49, 97},
                        tokens[] = {15, 16, 31, 33, 64, 65}, model[] = {1536, 3072, 3584, 7168};
    for (size_t n = 1; n <= 130; n++) {
        run_case(t, k, n, 1 + next(t) % 27, 1);
        run_case(t, k, n, 1 + next(t) % 27, 1 + next(t) % 9);
    }
    for (size_t T = 1; T <= 70; T++)
        for (int i = 0; i < 2; i++)
            run_case(t, k, 1 + next(t) % 90, 1 + next(t) % 40, T);
    for (int i = 0; i < 12; i++)
        run_case(t, k, edge[next(t) % 6], rows[next(t) % 6], tokens[next(t) % 6]);
    for (int i = 0; i < 4; i++) {
        run_case(t, k, model[i], 5 + next(t) % 9, 1);
        run_case(t, k, model[i], 5 + next(t) % 9, 2 + next(t) % 20);
    }
}

static void run_chains(test *t, const struct kernel *k)
{
    const bool many = k->sizes == CHAINS;
    for (size_t n = 1; n <= 130; n++)
        run_case(t, k, n, 1 + next(t) % 40, many ? 1 + next(t) % 20 : 1);
    for (size_t T = 1; T <= (many ? 70 : 4); T++)
        run_case(t, k, 1 + next(t) % 300, 1 + next(t) % 200, T);
    run_case(t, k, 512, 130, many ? 13 : 1);
}

static void run_convs(test *t, const struct kernel *k)
{
    for (size_t n = 1; n <= 130; n++)
        run_case(t, k, n, n % 3 ? 4 : 1 + next(t) % 20, 1 + next(t) % 6);
    run_case(t, k, 12288, 4, 1);
    run_case(t, k, 300, 4, 33);
}

static void run_kernel(test *t, const struct kernel *k)
{
    if (t->bench)
        run_case(t, k, k->measured.n, k->measured.rows, k->measured.T);
    else if (k->sizes == VECTOR)
        run_vectors(t, k);
    else if (k->sizes == MATRIX)
        run_matrices(t, k);
    else if (k->sizes == CONV)
        run_convs(t, k);
    else if (k->sizes == HEAD)
        for (size_t D = 1; D <= 130; D++)
            run_case(t, k, D, 1, 1);
    else
        run_chains(t, k);
}

static void on_fault(int sig)
{
    static const char text[] = ": read or wrote outside an array\n";
    ssize_t r = write(1, "FAIL ", 5);
    r = write(1, now, strlen(now));
    r = write(1, text, sizeof text - 1);
    (void)r;
    signal(sig, SIG_DFL);
    raise(sig);
}

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
