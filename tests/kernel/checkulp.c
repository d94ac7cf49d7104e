/* SPDX-License-Identifier: Apache-2.0 */
/* checkulp - exp, tanh and sigmoid against double precision, and every
 * instruction set against plain C, over a sample or all of the 2^32 floats.
 */
#include "contract.h"

enum { BLOCK = 1 << 12, FUNCTIONS = 3, MAX_ISA = 8 };

static double sigmoid_double(double x)
{
    return 1 / (1 + exp(-x));
}

static const struct function {
    const char *name;
    double (*exact)(double);
    double bound; /* ulp */
} functions[FUNCTIONS] = {{"exp", exp, 2}, {"tanh", tanh, 2}, {"sigmoid", sigmoid_double, 3}};

typedef struct {
    double worst; /* ulp */
    float at;
    uint64_t different, wrong; /* from plain C; NaN, infinity or sign amiss */
    float where;
} verdict;

typedef struct {
    const k3_kernels *K[MAX_ISA];
    int isas;
    uint64_t stride;                   /* between the bit patterns tried */
    verdict v[64][FUNCTIONS][MAX_ISA]; /* by worker */
} job;

static void (*kernel_of(const k3_kernels *K, int f))(float *, const float *, size_t)
{
    return f == 0 ? K->exp : f == 1 ? K->tanh : K->sigmoid;
}

/* |got - want| in units of the last place of a float near want. */
static double ulps(float got, double want)
{
    int e = want == 0 ? -126 : ilogb(want);
    return fabs((double)got - want) / ldexp(1, (e < -126 ? -126 : e) - 23);
}

static void judge(verdict *v, const struct function *f, float x, float got)
{
    double want = f->exact((double)x), huge = 0x1.ffffffp127; /* rounds to infinity from here */
    bool wrong = x != x         ? got == got
                 : want >= huge ? !isinf(got)
                                : got != got || isinf(got) || !signbit(got) != !signbit(want);
    if (wrong && !v->wrong++)
        v->where = x;
    if (wrong || x != x || want >= huge)
        return;
    double u = ulps(got, want);
    if (u > v->worst) {
        v->worst = u;
        v->at = x;
    }
}

static void check_block(job *j, int worker, const float *x, size_t n)
{
    float plain[BLOCK], got[BLOCK];
    for (int f = 0; f < FUNCTIONS; f++)
        for (int k = 0; k < j->isas; k++) {
            verdict *v = &j->v[worker][f][k];
            kernel_of(j->K[k], f)(k ? got : plain, x, n);
            for (size_t i = 0; i < n; i++)
                if (k == 0)
                    judge(v, &functions[f], x[i], plain[i]);
                else if (!same(got[i], plain[i]) && !v->different++)
                    v->where = x[i];
        }
}

static void work(void *arg, int worker, int workers)
{
    job *j = arg;
    size_t begin, end, n = 0;
    k3_share((size_t)1 << 32, BLOCK, worker, workers, &begin, &end);
    float x[BLOCK];
    for (uint64_t u = (begin + j->stride - 1) / j->stride * j->stride; u < end; u += j->stride) {
        x[n++] = bits_to_float((uint32_t)u);
        if (n == BLOCK) {
            check_block(j, worker, x, n);
            n = 0;
        }
    }
    check_block(j, worker, x, n);
}

/* Where a range ends or a formula changes, and the patterns around it. */
static void check_edges(job *j)
{
    static const float edge[] = {0,      0x1p-149f,       0x1p-126f, 0.34657359f, 0.5625f,   1,         9.010913f,
                                 17.3f,  88.722839f,      89,        87.33655f,   88.37626f, 103.2789f, 103.972084f,
                                 104.5f, 0x1.fffffep127f, INFINITY};
    for (size_t e = 0; e < sizeof edge / sizeof *edge; e++) {
        float x[400];
        for (int i = 0; i < 400; i++)
            x[i] = bits_to_float((float_to_bits(edge[e]) + (uint32_t)(i / 2) - 100) ^ (i % 2 ? 0x80000000u : 0));
        check_block(j, 0, x, 400);
    }
}

static void report(job *j, int workers, int *passed, int *failed)
{
    for (int f = 0; f < FUNCTIONS; f++)
        for (int k = 0; k < j->isas; k++) {
            verdict all = {0};
            for (int w = 0; w < workers; w++) {
                verdict *v = &j->v[w][f][k];
                if (v->worst > all.worst)
                    all.worst = v->worst, all.at = v->at;
                if (v->wrong + v->different)
                    all.where = v->where;
                all.wrong += v->wrong;
                all.different += v->different;
            }
            bool ok = all.worst <= functions[f].bound && !all.wrong && !all.different;
            *passed += ok;
            *failed += !ok;
            if (k == 0)
                k3_note("%s: at most %.3f ulp, at %a", functions[f].name, all.worst, (double)all.at);
            if (!ok)
                printf("FAIL %s %s: %.3f ulp at %a; %llu wrong, %llu unlike plain C, as at %a\n", j->K[k]->name,
                       functions[f].name, all.worst, (double)all.at, (unsigned long long)all.wrong,
                       (unsigned long long)all.different, (double)all.where);
        }
}

static const k3_opt options[] = {
    {"all", 'a', NULL, "every float instead of one in 4099; minutes", K3_OPT_FLAG},
    K3_COMMON_OPTS,
    {0},
};

int main(int argc, char **argv)
{
    k3_prog_start("checkulp");
    static job j = {.stride = 4099};
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = options,
                    .usage = "usage: checkulp [--all]\nChecks the accuracy of exp, tanh and sigmoid.\n"};
    bool all = false, done;
    if (k3_opt_parse(&args, &all, &done, &err))
        return k3_prog_end(k3_report_error(&err));
    if (done)
        return k3_prog_end(0);
    if (all)
        j.stride = 1;
    while ((j.K[j.isas] = k3_kernels_available(j.isas)))
        j.isas++;
    k3_pool *pool = NULL;
    int threads = k3_threads_default();
    if (k3_pool_new(&pool, threads > 64 ? 64 : threads, &err))
        return k3_report_error(&err);
    k3_pool_run(pool, work, &j);
    check_edges(&j);
    int passed = 0, failed = 0;
    report(&j, k3_pool_size(pool), &passed, &failed);
    k3_pool_free(pool);
    printf("%d passed, %d failed, 0 skipped\n", passed, failed);
    return k3_prog_end(failed || !passed);
}
