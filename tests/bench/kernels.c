/* SPDX-License-Identifier: Apache-2.0 */
/* kernels - time of each kernel at the model's sizes and how near it comes to
 * what the machine can do: reading memory, or multiplying and adding.
 */
#include <jansson.h>
#include <string.h>
#include <sys/mman.h>

#include "shapes.h"

#include "meter.h"

enum { HUGE = 2 << 20 };
#define READ_BYTES ((size_t)96 << 20)

/* The next stretch of the big array, so that nothing is still in cache. */
static size_t advance(size_t *at, size_t bytes, size_t room)
{
    size_t here = *at + bytes <= room ? *at : 0;
    *at = (here + bytes + 4095) / 4096 * 4096;
    return here;
}

static double run_once(const bench *b, scene *s, const meter *how)
{
    return b->part ? b->part(s) : timed(how, b->run, s);
}

static double bytes_of(const bench *b, const scene *s)
{
    return b->bytes > 0 ? b->bytes : s->layers->bytes;
}

/* Samples the kernel, a plain read or update and a plain multiply-add in turn until the budget is used up. */
static result measure(const bench *b, scene *s, const meter *how)
{
    double run[MAX_SAMPLES], memory[MAX_SAMPLES], fma[MAX_SAMPLES], of_memory[MAX_SAMPLES], of_fma[MAX_SAMPLES];
    limit_job l = how->limit;
    size_t next = 0, next_read = 0, span = (size_t)b->bytes;
    const double updated = b->from == UPDATED ? 2 : 1;
    s->rows = b->rows;
    s->n = b->n;
    s->T = b->T;
    s->at = 0;
    run_once(b, s, how);
    long rounds = b->from ? 1 : 1 + (long)(2e-4 / (1e-9 + run_once(b, s, how)));
    int n = 0;
    for (double begin = k3_now(); n < MAX_SAMPLES && (n < MIN_SAMPLES || k3_now() - begin < how->budget); n++) {
        run[n] = 0;
        for (long r = 0; r < rounds; r++) {
            s->at = b->from && !b->part ? advance(&next, span, BIG) : 0;
            run[n] += run_once(b, s, how) / (double)rounds;
        }
        l.data = s->weights + advance(&next_read, READ_BYTES, BIG);
        memory[n] = updated * (double)READ_BYTES / timed(how, updated > 1 ? limit_update : limit_read, &l);
        fma[n] = limit_flops(&l, k3_pool_size(how->pool)) / timed(how, limit_fma, &l);
        of_memory[n] = b->from ? bytes_of(b, s) / run[n] / memory[n] : 0;
        of_fma[n] = b->flops / run[n] / fma[n];
    }
    return (result){median(run, n), median(memory, n), median(fma, n), median(of_memory, n), median(of_fma, n)};
}

static void print_result(const bench *b, const result *r, const scene *s, int threads, json_t *list)
{
    const char *isa = s->K->name;
    double bytes = bytes_of(b, s) / r->seconds, flops = b->flops / r->seconds;
    double ratio = r->of_memory > r->of_fma ? r->of_memory : r->of_fma;
    const char *limit = ratio == 0 ? "none" : ratio > r->of_memory ? "fma" : b->from == UPDATED ? "update" : "read";
    if (list) {
        json_array_append_new(list,
                              json_pack("{s:s s:s s:s s:i s:f s:f s:f s:f s:f s:f s:s}", "kernel", b->name, "shape",
                                        b->shape, "isa", isa, "threads", threads, "seconds", r->seconds,
                                        "bytes_per_second", bytes, "flops_per_second", flops,
                                        "memory_bytes_per_second", r->memory, "fma_flops_per_second", r->fma, "ratio",
                                        ratio, "limit", limit));
        return;
    }
    printf("%-14s %-25s %d %11.4f ms", b->name, b->shape, threads, r->seconds * 1e3);
    printf("%8.1f GB/s %8.1f GFLOP/s  (%5.1f, %6.1f)", bytes / 1e9, flops / 1e9, r->memory / 1e9, r->fma / 1e9);
    if (ratio > 0)
        printf(" %4.0f %% of %s", ratio * 100, limit);
    if (b->from == READ && r->of_memory > 1.03)
        printf("  THE LIMIT IS WRONG: memory can be read faster than the bench knows");
    printf("\n");
    fflush(stdout);
}

/* The fastest of all ways to read memory: streams, hints, huge pages or not; shortest times, taken in turn. */
static int find_limit(scene *s, meter *how, k3_err *err)
{
    static const int streams[] = {1, 2, 4, 8};
    limit_job l = {.size = READ_BYTES, .rounds = 200000, .width = limit_width(s->K)};
    char *small = mmap(NULL, READ_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double least = 0;
    if (small == MAP_FAILED)
        return k3_fail(err, K3_ESYS, "out of memory");
    madvise(small, READ_BYTES, MADV_NOHUGEPAGE);
    memset(small, 1, READ_BYTES);
    how->limit = l;
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < 24; i++) {
            l.streams = streams[i % 4];
            l.hint = i / 4 % 3;
            l.data = i < 12 ? s->weights : small;
            double t = timed(how, limit_read, &l);
            if (least == 0 || t < least) {
                least = t;
                how->limit = l;
            }
        }
    if (!how->quiet)
        printf("read limit of %d threads: %.1f GB/s, %d streams, hint %s, huge pages %s\n", k3_pool_size(how->pool),
               (double)READ_BYTES / least / 1e9, how->limit.streams, k3_hint_name((k3_hint)how->limit.hint),
               how->limit.data == small ? "off" : "on");
    munmap(small, READ_BYTES);
    return 0;
}

/* Gaussian weights as a compact matrix of 12288 x 7168: drawn from a table, whose numbers add up to be normal enough. */
static int set_compact(scene *s, k3_err *err)
{
    enum { ROWS = 12288, COLS = 7168, TABLE = 1 << 16 };
    static uint16_t table[TABLE];
    uint16_t *w = malloc((size_t)ROWS * COLS * sizeof *w);
    uint8_t *data = malloc((size_t)ROWS * COLS * sizeof *w);
    uint64_t r = 88172645463325252u;
    if (!w || !data)
        return k3_fail(err, K3_ESYS, "out of memory");
    for (int i = 0; i < TABLE; i++) {
        float sum = 0;
        for (int k = 0; k < 12; k++) {
            r = r * 6364136223846793005u + 1442695040888963407u;
            sum += (float)(int32_t)(r >> 32) * 0x1p-32f;
        }
        sum *= 0.02f;
        uint32_t u;
        memcpy(&u, &sum, sizeof u);
        table[i] = (uint16_t)(u >> 16);
    }
    for (size_t i = 0; i < (size_t)ROWS * COLS; i++) {
        r = r * 6364136223846793005u + 1442695040888963407u;
        w[i] = table[r >> 48];
    }
    double begin = k3_now();
    uint64_t bytes = k3_compact_encode(data, w, ROWS, COLS);
    fprintf(stderr, "compact: %.4f of bf16, encoded at %.0f MB/s\n", (double)bytes / (2.0 * ROWS * COLS),
            2e-6 * ROWS * COLS / (k3_now() - begin));
    free(w);
    return k3_compact_open(&s->compact, data, bytes, ROWS, COLS) ? 0 : k3_fail(err, K3_EDATA, "a compact matrix was not made");
}

static void *huge(size_t size)
{
    char *p = mmap(NULL, size + HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    p = (char *)(((uintptr_t)p + HUGE - 1) / HUGE * HUGE);
    madvise(p, size, MADV_HUGEPAGE);
    return p;
}

/* Values for all uses: as bf16 and as f32 of magnitude 1/128 to 1/64, scale bytes near 127. */
static int set_scene(scene *s, k3_err *err)
{
    s->weights = huge(BIG);
    s->scale = huge(SCALES);
    s->x = huge(ACT);
    s->out = huge(ACT);
    if (!s->weights || !s->scale || !s->x || !s->out)
        return k3_fail(err, K3_ESYS, "out of memory");
    for (int i = 0; i < MAX_WORKERS; i++) {
        s->work[i] = (k3_work){aligned_alloc(64, K3_SCRATCH_BYTES), k3_reading_usual()};
        if (!s->work[i].scratch)
            return k3_fail(err, K3_ESYS, "out of memory");
    }
    uint64_t r = 88172645463325252u;
    for (size_t i = 0; i < BIG; i += 8) {
        r ^= r << 13;
        r ^= r >> 7;
        r ^= r << 17;
        uint64_t v = (r & 0x807f807f807f807fu) | 0x3c003c003c003c00u;
        memcpy(s->weights + i, &v, 8);
    }
    for (size_t i = 0; i < SCALES; i++)
        s->scale[i] = (uint8_t)(120 + i * 2654435761u / 65536 % 12);
    for (size_t i = 0; i < ACT / sizeof *s->x; i++)
        s->x[i] = (float)(int32_t)((uint32_t)i * 2654435761u) * 0x1p-31f;
    return 0;
}

typedef struct {
    const char *isa, *kernel;
    uint64_t threads;
    double seconds;
    bool cpu_time, json;
} settings;

#define AT(field) offsetof(settings, field)
static const k3_opt options[] = {
    {"isa", 'i', "NAME", "instruction set (the best this machine has)", K3_OPT_TEXT, AT(isa)},
    {"threads", 't', "N", "threads (1, then one for each core)", K3_OPT_U64, AT(threads), 1, MAX_WORKERS},
    {"kernel", 'k', "NAME", "only kernels whose name starts with NAME", K3_OPT_TEXT, AT(kernel)},
    {"seconds", 's', "X", "time for each measurement (0.5)", K3_OPT_DOUBLE, AT(seconds), .high = 3600},
    {"cpu-time", 0, NULL,
     "time that the slowest worker was running, not time that passed:\nfor a machine that is doing other work", K3_OPT_FLAG,
     AT(cpu_time)},
    {"json", 0, NULL, "results as JSON", K3_OPT_FLAG, AT(json)},
    K3_COMMON_OPTS,
    {0},
};

static int run_all(scene *s, const settings *set, int threads, json_t *list, k3_err *err)
{
    meter m = {.budget = set->seconds, .cpu_time = set->cpu_time, .quiet = list != NULL};
    if (k3_pool_new(&m.pool, threads, err) || layers_open(s, m.pool, err) || find_limit(s, &m, err))
        return err->status;
    for (int i = 0; i < BENCHES; i++) {
        if (set->kernel && strncmp(benches[i].name, set->kernel, strlen(set->kernel)) != 0)
            continue;
        result r = measure(&benches[i], s, &m);
        print_result(&benches[i], &r, s, threads, list);
    }
    layers_close(s);
    k3_pool_free(m.pool);
    return 0;
}

int main(int argc, char **argv)
{
    k3_prog_start("kernels");
    settings set = {.seconds = 0.5};
    k3_err err = {0};
    k3_args args = {.argc = argc, .argv = argv, .table = options,
                    .usage = "usage: kernels [options]\nTimes the kernels against the limits of this machine.\n"};
    bool done;
    if (k3_opt_parse(&args, &set, &done, &err))
        return k3_prog_end(k3_report_error(&err));
    if (done)
        return k3_prog_end(0);
    scene s = {.K = k3_kernels_select(set.isa, &err)};
    if (!s.K || set_scene(&s, &err) || set_compact(&s, &err))
        return k3_report_error(&err);
    json_t *list = set.json ? json_array() : NULL;
    if (!list)
        printf("%s; in brackets: memory and fused multiply-add measured beside each kernel\n", s.K->name);
    int cores = k3_threads_default(), status = 0;
    cores = cores < MAX_WORKERS ? cores : MAX_WORKERS;
    if (set.threads)
        status = run_all(&s, &set, (int)set.threads, list, &err);
    else
        for (int t = 1; t <= cores && !status; t = t < cores ? cores : cores + 1)
            status = run_all(&s, &set, t, list, &err);
    if (status)
        return k3_report_error(&err);
    if (list) {
        json_dumpf(list, stdout, JSON_INDENT(1));
        printf("\n");
        json_decref(list);
    }
    return k3_prog_end(0);
}
