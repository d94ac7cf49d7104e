/* SPDX-License-Identifier: Apache-2.0 */
/* The steps that every block is made of: taking pieces from the source and
 * sharing rows or tokens among the workers. */
#include "pass.h"

#include <stdatomic.h>
#include <string.h>

/* Workers take the next stretch when they are done with one: a worker whose
 * core was lent to a reader then holds up no other by more than a stretch. */
enum { STRETCHES = 4 }; /* of each worker */

struct job {
    k3_model *m;
    size_t n, stretch;
    pass_fn fn;
    void *arg;
    _Atomic size_t taken;
};

static void run_job(void *arg, int worker, int workers)
{
    struct job *j = arg;
    size_t begin;
    (void)workers;
    while ((begin = atomic_fetch_add_explicit(&j->taken, j->stretch, memory_order_relaxed)) < j->n)
        j->fn(j->m, j->arg, worker, begin, begin + j->stretch < j->n ? begin + j->stretch : j->n);
}

void k3_pass_parallel(k3_model *m, size_t n, size_t grain, pass_fn fn, void *arg)
{
    size_t share = n / ((size_t)k3_pool_size(m->pool) * STRETCHES) / grain * grain;
    struct job j = {.m = m, .n = n, .stretch = share > grain ? share : grain, .fn = fn, .arg = arg};
    if (n <= grain)
        run_job(&j, 0, 1);
    else
        k3_pool_run(m->pool, run_job, &j);
}

int k3_pass_piece(k3_model *m, k3_source *src, int layer, k3_tensor_id id, const k3_piece **p, const void **data,
               k3_err *err)
{
    char want[K3_NAME_MAX], got[K3_NAME_MAX];
    int status = src->next(src, p, data, err);
    if (status)
        return status;
    m->reading = src->reading;
    if ((*p)->layer != layer || (*p)->tensor != id) {
        k3_tensor_name(got, (*p)->layer, (k3_tensor_id)(*p)->tensor);
        src->release(src);
        return k3_fail(err, K3_ESYS, "weights out of order: \"%s\" came for \"%s\"", got, k3_tensor_name(want, layer, id));
    }
    return 0;
}

/* float32 in dst from a vector tensor's bytes; A_log arrives as its first H entries. */
static void widen(k3_model *m, const k3_tensor *t, const void *data, float *dst)
{
    size_t n = t->rows * t->cols;
    if (t->dtype == K3_BF16)
        m->k->widen_bf16(dst, data, n);
    else
        memcpy(dst, data, n * sizeof(float));
}

int k3_pass_vectors(k3_model *m, k3_source *src, int layer, k3_err *err)
{
    for (int id = 0; id < K3_TENSORS; id++) {
        k3_tensor t;
        const k3_piece *p;
        const void *data;
        if (!k3_schema_tensor(m->c, layer, (k3_tensor_id)id, &t) || t.use != K3_USE_VECTOR)
            continue;
        int status = k3_pass_piece(m, src, layer, (k3_tensor_id)id, &p, &data, err);
        if (status)
            return status;
        widen(m, &t, data, m->vec[id]);
        src->release(src);
    }
    return 0;
}

k3_work k3_pass_work(const k3_model *m, int worker)
{
    return (k3_work){.scratch = m->kernel[worker], .reading = m->reading};
}

struct product {
    const uint16_t *w;
    size_t cols;
    struct operands o;
};

static void product_rows(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    struct product *a = arg;
    k3_work work = k3_pass_work(m, worker);
    k3_weights w = {.data = a->w + begin * a->cols, .rows = end - begin, .cols = a->cols};
    m->k->mm_bf16(a->o.out + begin, a->o.ldo, &w, &(k3_vectors){a->o.x, a->o.T, a->o.ldx}, &work);
}

void k3_pass_rows(k3_model *m, const k3_tensor *t, const k3_piece *p, const void *data, const struct operands *o)
{
    struct product a = {data, t->cols, *o};
    a.o.out += p->row0;
    k3_pass_parallel(m, p->rows, ROW_GRAIN, product_rows, &a);
}

int k3_pass_matrix(k3_model *m, k3_source *src, int layer, k3_tensor_id id, const struct operands *o, k3_err *err)
{
    k3_tensor t;
    k3_schema_tensor(m->c, layer, id, &t);
    for (uint64_t row = 0; row < t.rows;) {
        const k3_piece *p;
        const void *data;
        int status = k3_pass_piece(m, src, layer, id, &p, &data, err);
        if (status)
            return status;
        if (o->T)
            k3_pass_rows(m, &t, p, data, o);
        row = (uint64_t)p->row0 + p->rows;
        src->release(src);
    }
    return 0;
}

int k3_pass_tokens(k3_model *m, k3_source *src, int layer, k3_tensor_id id, const float *x, float *out, k3_err *err)
{
    k3_tensor t;
    k3_schema_tensor(m->c, layer, id, &t);
    return k3_pass_matrix(m, src, layer, id, &(struct operands){x, t.cols, m->tokens, out, t.rows}, err);
}

int k3_pass_skip(k3_model *m, k3_source *src, int layer, k3_tensor_id id, k3_err *err)
{
    k3_tensor t;
    if (!k3_schema_tensor(m->c, layer, id, &t))
        return 0;
    for (uint64_t row = 0; row < t.rows;) {
        const k3_piece *p;
        const void *data;
        int status = k3_pass_piece(m, src, layer, id, &p, &data, err);
        if (status)
            return status;
        row = (uint64_t)p->row0 + p->rows;
        src->release(src);
    }
    return 0;
}

struct norm {
    const float *x, *w;
    float *out, eps;
    size_t n;
};

static void norm_tokens(k3_model *m, void *arg, int worker, size_t begin, size_t end)
{
    struct norm *a = arg;
    (void)worker;
    for (size_t t = begin; t < end; t++)
        m->k->rmsnorm(a->out + t * a->n, a->x + t * a->n, a->w, a->n, a->eps);
}

void k3_pass_norm(k3_model *m, const float *x, size_t n, const float *w, double eps, float *out)
{
    struct norm a = {x, w, out, (float)eps, n};
    k3_pass_parallel(m, m->tokens, 1, norm_tokens, &a);
}
