/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - the kernels and the sizes, values and alignments that each is run with. */
#ifndef CASES_H
#define CASES_H

#include <signal.h>
#include <unistd.h>

#include "checks_compact.h"

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
    {"mm_compact", check_mm_compact, MATRIX, {7168, 96, 1}},
    {"mm_compact, damaged", check_damaged_compact, MATRIX, {7168, 96, 1}},
    {"compact_decode", check_compact_decode, MATRIX, {7168, 96, 1}},
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
    t->arena.at_end = (int)(next(t) >> 9 & 1); /* or an array of a pair would always touch the same guard */
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

#endif
