/* SPDX-License-Identifier: Apache-2.0 */
/* Runs many policies and sizes over one trace, side by side. Policies that do not
 * know the future take the trace in chunks, so a pipe of any length fits. */
#include "simulate.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 }; /* requests */

uint32_t token_slots(const k3_shape *s)
{
    return (uint32_t)(s->layers - s->first) * (uint32_t)s->topk;
}

double unit_of(double bytes, const char **name)
{
    *name = bytes >= 1e9 ? "GB" : bytes >= 1e6 ? "MB" : "kB";
    return bytes >= 1e9 ? 1e9 : bytes >= 1e6 ? 1e6 : 1e3;
}

/* ---- what to simulate -------------------------------------------------------------- */

int parse_policies(const char *text, struct sim_job *job, k3_err *err)
{
    char item[32];
    job->kinds = 0;
    if (!strcmp(text, "all")) {
        for (int kind = 0; kind < K3_SIM_COUNT; kind++)
            job->kind[job->kinds++] = kind;
        return 0;
    }
    while (k3_opt_word(&text, ',', item, sizeof item)) {
        int kind = k3_sim_kind(item);
        if (kind < 0)
            return k3_fail(err, K3_EUSAGE, "--policy: \"%s\" is not known; see k3-trace sim --help", item);
        for (int i = 0; i < job->kinds; i++)
            if (job->kind[i] == kind)
                return k3_fail(err, K3_EUSAGE, "--policy: %s is named twice", item);
        job->kind[job->kinds++] = kind;
    }
    return 0;
}

static int parse_size(const char *item, const k3_trace_header *h, uint32_t *slots, k3_err *err)
{
    uint64_t pool = (uint64_t)(h->shape.layers - h->shape.first) * (uint64_t)h->shape.experts, v;
    size_t n = strlen(item);
    char number[64];
    int status;
    if (n && item[n - 1] == '%') {
        double percent;
        snprintf(number, sizeof number, "%.*s", (int)n - 1, item);
        status = k3_num_double(number, "--size", 0, 100, &percent, err);
        v = (uint64_t)(percent / 100 * (double)pool + 1e-9);
    } else if (n && strspn(item, "0123456789") == n) {
        status = k3_num_u64(item, "--size", 0, UINT32_MAX, &v, err);
    } else {
        status = k3_num_size(item, "--size", 1, &v, err);
        v /= h->expert_bytes;
    }
    *slots = (uint32_t)(v < pool ? v : pool);
    if (status)
        return k3_fail(err, K3_EUSAGE,
                       "--size: \"%s\" is neither slots (455), bytes (8G) nor a share of all experts (10%%)", item);
    return 0;
}

int parse_sizes(const char *text, const k3_trace_header *h, struct sim_job *job, k3_err *err)
{
    char item[64];
    job->sizes = 0;
    while (k3_opt_word(&text, ',', item, sizeof item)) {
        if (job->sizes == MAX_SIZES)
            return k3_fail(err, K3_EUSAGE, "--size: more than %d sizes", MAX_SIZES);
        int status = parse_size(item, h, &job->slots[job->sizes++], err);
        if (status)
            return status;
    }
    return 0;
}

int parse_warmup(const char *text, struct warmup *w, k3_err *err)
{
    if (!strcmp(text, "prefill")) {
        w->prefill = true;
        return 0;
    }
    if (k3_num_u64(text, "--warmup", 0, UINT64_MAX - 1, &w->steps, NULL))
        return k3_fail(err, K3_EUSAGE, "--warmup: \"%s\" is neither a number of steps nor \"prefill\"", text);
    return 0;
}

/* ---- running ------------------------------------------------------------------------ */

struct instance {
    int kind;
    uint32_t slots;
    k3_sim *sim;
    uint64_t *hits;
};

struct run {
    const struct sim_job *job;
    struct outcome *o;
    k3_requests q;
    struct instance *instance; /* all but lru */
    int instances;
    bool whole; /* someone knows the future: the trace is held */
    k3_pool *pool;
    double began, chunk_began; /* seconds on the clock */
    atomic_int next;      /* task of run_chunk that is to be taken: 0 the curve, i the instance i - 1 */
    pthread_mutex_t lock; /* of what follows */
    int failed;           /* the lowest task that failed, -1 if none */
    k3_err why;
};

/* Runs one instance over what is in q; those of a whole trace live only as long as this takes. */
static int run_instance(struct run *run, struct instance *in, k3_err *err)
{
    const struct sim_job *job = run->job;
    int status = 0;
    if (!in->sim)
        status = k3_sim_new(&in->sim, in->kind, &run->o->header.shape, in->slots, job->batched, job->seed, err);
    if (!status)
        status = k3_sim_run(in->sim, &run->q, err);
    if (!status)
        *in->hits = k3_sim_hits(in->sim);
    if (run->whole || status) {
        k3_sim_free(in->sim);
        in->sim = NULL;
    }
    return status;
}

/* How far the chunk is, if it takes seconds; of tasks the first are taken first. */
static void show_tasks(const struct run *run, int done)
{
    double seconds = k3_now() - run->chunk_began;
    if (seconds < 1 || done < 1)
        return;
    uint64_t left = (uint64_t)(seconds / done * (run->instances + 1 - done) + 0.5);
    k3_progress(false, "%s: %d of %d simulations, %.1f/s, %llu:%02llu left", k3_prog, done, run->instances + 1, done / seconds,
                (unsigned long long)left / 60, (unsigned long long)left % 60);
}

/* How far the trace is read. */
static void show_bytes(const struct run *run, const k3_trace_reader *r, uint64_t step)
{
    uint64_t total, done = k3_trace_bytes(r, &total);
    if (total >= done && total)
        k3_progress_bytes("simulated", done, total, run->began);
    else
        k3_progress(false, "%s: step %llu, %.0f/s", k3_prog, (unsigned long long)step, (double)step / (k3_now() - run->began));
}

/* One worker: takes tasks until none is left. */
static void run_tasks(void *arg, int worker, int workers)
{
    struct run *run = arg;
    (void)workers;
    for (int i; (i = atomic_fetch_add(&run->next, 1)) <= run->instances;) {
        if (!worker)
            show_tasks(run, i);
        k3_err why = {0};
        int status = i ? run_instance(run, &run->instance[i - 1], &why) : k3_curve_run(run->o->curve, &run->q, &why);
        if (!status)
            continue;
        pthread_mutex_lock(&run->lock);
        if (run->failed < 0 || i < run->failed) {
            run->failed = i;
            run->why = why;
        }
        pthread_mutex_unlock(&run->lock);
    }
}

/* Everybody over what is in q. */
static int run_chunk(struct run *run, k3_err *err)
{
    run->next = 0;
    run->failed = -1;
    run->chunk_began = k3_now();
    k3_pool_run(run->pool, run_tasks, run);
    k3_requests_clear(&run->q);
    return run->failed < 0 ? 0 : k3_fail(err, run->why.status, "%s", run->why.text);
}

static void count_uses(struct outcome *o, const k3_trace_batch *b)
{
    const k3_shape *s = &o->header.shape;
    uint64_t *uses = o->uses + (size_t)(b->layer - s->first) * (size_t)s->experts;
    for (int i = 0; i < b->rows * b->k; i++)
        uses[b->experts[i]]++;
}

static int read_and_run(struct run *run, k3_trace_reader *r, k3_err *err)
{
    const struct warmup *warm = &run->job->warmup;
    struct outcome *o = run->o;
    const k3_trace_batch *b;
    bool counted = false, seen = false;
    int status;
    while (!(status = k3_trace_next(r, &b, err)) && b) {
        if (b->new_step || !seen) {
            counted = b->step >= warm->steps && !(warm->prefill && b->row[0].phase == K3_PHASE_PREFILL);
            o->tokens += counted ? (uint64_t)b->rows : 0;
            seen = true;
        }
        if (o->uses)
            count_uses(o, b);
        uint64_t before = run->q.n;
        if ((status = k3_requests_add(&run->q, b, counted, err)))
            break;
        o->requests += counted ? run->q.n - before : 0;
        if (!run->whole && run->q.n >= CHUNK && (status = run_chunk(run, err)))
            break;
        if (b->new_step)
            show_bytes(run, r, b->step);
    }
    status = status ? status : run_chunk(run, err);
    k3_progress_end();
    return status;
}

static int set_up(struct run *run, k3_err *err)
{
    const struct sim_job *job = run->job;
    struct outcome *o = run->o;
    size_t n = (size_t)job->kinds * (size_t)job->sizes;
    o->hits = calloc(n + 1, sizeof *o->hits);
    run->instance = calloc(n + 1, sizeof *run->instance);
    if (job->count_uses)
        o->uses = calloc((size_t)(o->header.shape.layers - o->header.shape.first) * (size_t)o->header.shape.experts,
                         sizeof *o->uses);
    if (!o->hits || !run->instance || (job->count_uses && !o->uses))
        return k3_fail(err, K3_ESYS, "out of memory for %zu simulations", n);
    for (int k = 0; k < job->kinds; k++) {
        run->whole |= k3_sim_knows_future(job->kind[k]);
        for (int s = 0; s < job->sizes && job->kind[k] != K3_SIM_LRU; s++)
            run->instance[run->instances++] =
                (struct instance){.kind = job->kind[k],
                                  .slots = job->slots[s],
                                  .hits = &o->hits[(size_t)k * (size_t)job->sizes + (size_t)s]};
    }
    int status = k3_requests_new(&run->q, &o->header.shape, job->batched, err);
    return status ? status : k3_curve_new(&o->curve, &o->header.shape, job->batched, err);
}

int simulate(k3_trace_reader *r, const struct sim_job *job, struct outcome *o, k3_err *err)
{
    struct run run = {.job = job, .o = o, .began = k3_now(), .lock = PTHREAD_MUTEX_INITIALIZER};
    *o = (struct outcome){.header = *k3_trace_info(r)};
    int status = set_up(&run, err), tasks = run.instances + 1;
    if (!status)
        status = k3_pool_new(&run.pool, job->threads < tasks ? job->threads : tasks, err);
    if (!status)
        status = read_and_run(&run, r, err);
    for (int i = 0; i < run.instances; i++)
        k3_sim_free(run.instance[i].sim);
    k3_pool_free(run.pool);
    free(run.instance);
    k3_requests_free(&run.q);
    if (status) {
        outcome_free(o);
        return status;
    }
    o->choices = k3_trace_count(r).choices;
    o->steps = k3_trace_count(r).steps;
    o->first = k3_curve_distance(o->curve, 0);
    o->distinct = k3_curve_distinct(o->curve);
    for (int k = 0; k < job->kinds; k++)
        for (int s = 0; s < job->sizes && job->kind[k] == K3_SIM_LRU; s++)
            o->hits[(size_t)k * (size_t)job->sizes + (size_t)s] = k3_curve_hits(o->curve, job->slots[s]);
    return 0;
}

void outcome_free(struct outcome *o)
{
    free(o->hits);
    free(o->uses);
    k3_curve_free(o->curve);
    o->uses = NULL;
    o->hits = NULL;
    o->curve = NULL;
}
