/* SPDX-License-Identifier: Apache-2.0 */
/* Speed of the cache simulator: requests a second on one thread, on synthetic
 * decode routing over K3's 92 x 896 experts.
 * usage: trace [TOKENS [unbatched]] (6,000 tokens = 8.8 M requests) */
#include "k3_sim.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t rng = 1;

/* CPU seconds of this thread: other programs on the machine do not count. */
static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t below(uint32_t n)
{
    rng = rng * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((rng >> 32) * n >> 32);
}

/* 40 % of a row is the previous row's, the rest falls off with the expert's number. */
static int fill(k3_requests *q, int tokens, k3_err *err)
{
    static uint16_t row[93][16];
    for (int t = 0; t < tokens; t++)
        for (int l = 1; l < 93; l++) {
            for (int i = 0; i < 16; i++) {
                if (t && below(100) < 40)
                    continue;
            again:
                row[l][i] = (uint16_t)(((uint64_t)below(896) * below(896) / 896 * 37 + (uint64_t)l * 101) % 896);
                for (int j = 0; j < 16; j++)
                    if (j != i && row[l][j] == row[l][i])
                        goto again;
            }
            const k3_trace_batch b = {.rows = 1, .k = 16, .layer = l, .experts = row[l]};
            int status = k3_requests_add(q, &b, true, err);
            if (status)
                return status;
        }
    return 0;
}

static int bench_policies(const k3_requests *q, k3_err *err)
{
    static const uint32_t sizes[] = {740, 2802, 16486};
    for (int kind = 0; kind < K3_SIM_COUNT; kind++) {
        printf("%-14s", k3_sim_name(kind));
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            k3_sim *s;
            int status = k3_sim_new(&s, kind, &q->shape, sizes[i], q->batched, 1, err);
            double start = cpu_now();
            if (!status)
                status = k3_sim_run(s, q, err);
            if (status)
                return status;
            printf("  %6.1f M/s %5.2f %%", (double)q->n / (cpu_now() - start) / 1e6,
                   100.0 * (double)k3_sim_hits(s) / (double)q->n);
            k3_sim_free(s);
        }
        printf("\n");
    }
    return 0;
}

int main(int argc, char **argv)
{
    k3_shape shape = {.layers = 93, .first = 1, .experts = 896, .topk = 16};
    k3_err err = {0};
    k3_requests q = {0};
    k3_curve *c = NULL;
    bool batched = argc < 3 || strcmp(argv[2], "unbatched");
    k3_prog_start("bench-trace");
    int status = k3_requests_new(&q, &shape, batched, &err);
    if (!status)
        status = fill(&q, argc > 1 ? atoi(argv[1]) : 6000, &err);
    if (!status)
        status = k3_curve_new(&c, &shape, batched, &err);
    double start = cpu_now();
    if (!status)
        status = k3_curve_run(c, &q, &err);
    if (!status) {
        printf("%llu requests, %s; slots 740, 2802, 16486\n", (unsigned long long)q.n,
               batched ? "batched" : "unbatched");
        printf("%-14s  %6.1f M/s for every size at once\n", "lru curve", (double)q.n / (cpu_now() - start) / 1e6);
        status = bench_policies(&q, &err);
    }
    k3_curve_free(c);
    k3_requests_free(&q);
    return k3_prog_end(status ? k3_report_error(&err) : 0);
}
