/* SPDX-License-Identifier: Apache-2.0 */
/* How far two arrays are apart. */
#include "layer.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the operands: FILE, FILE:I or - ---- */

/* Item `index` along the first axis is all that is left of a. */
static int select_item(k3_npy *a, const char *name, const char *index, k3_err *err)
{
    char text[K3_SHAPE_TEXT];
    bool back = *index == '-';
    uint64_t i, n = a->ndim ? a->shape[0] : 0;
    int status = k3_num_u64(index + back, name, 0, INT64_MAX, &i, err);
    if (status)
        return status;
    if (back ? i > n || !i : i >= n)
        return k3_fail(err, K3_EDATA, "%s: no item %s in an array of shape %s", name, index,
                       shape_text(text, a->ndim, a->shape));
    a->count /= n;
    memmove(a->data, (char *)a->data + (back ? n - i : i) * a->count * a->itemsize, a->count * a->itemsize);
    memmove(a->shape, a->shape + 1, (size_t)--a->ndim * sizeof *a->shape);
    return 0;
}

/* The I of FILE:I, or NULL. */
static const char *index_of(const char *name)
{
    const char *colon = strrchr(name, ':');
    const char *digits = colon && colon[1] == '-' ? colon + 2 : colon ? colon + 1 : "";
    return *digits && strspn(digits, "0123456789") == strlen(digits) ? colon + 1 : NULL;
}

static int read_array(const char *name, k3_npy *a, k3_err *err)
{
    const char *index = NULL;
    if (!strcmp(name, "-"))
        return read_stdin(a, err);
    FILE *from = fopen(name, "rbe");
    if (!from && (index = index_of(name))) {
        char *file = strndup(name, (size_t)(index - 1 - name));
        from = file ? fopen(file, "rbe") : NULL;
        free(file);
    }
    if (!from)
        return k3_fail_errno(err, name, "cannot open");
    int status = k3_npy_read(from, name, a, err);
    if (!status && getc(from) != EOF)
        status = k3_fail(err, K3_EDATA, "%s: more bytes after the array of %" PRIu64 " values", name, a->count);
    if (!status && index)
        status = select_item(a, name, index, err);
    fclose(from);
    return status;
}

/* ---- the values ---- */

static double half(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return h >> 15 ? -v : v;
}

/* Element i; a long double holds every value of every dtype. */
static long double value_at(const k3_npy *a, uint64_t i)
{
    const void *p = (const char *)a->data + i * a->itemsize;
    switch (a->dtype[1] << 8 | a->dtype[2]) {
#define CASE(kind, size, type)                                                                                       \
    case kind << 8 | size: {                                                                                         \
        type v;                                                                                                      \
        memcpy(&v, p, sizeof v);                                                                                     \
        return v;                                                                                                    \
    }
        CASE('f', '4', float)
        CASE('f', '8', double)
        CASE('i', '1', int8_t)
        CASE('i', '2', int16_t)
        CASE('i', '4', int32_t)
        CASE('i', '8', int64_t)
        CASE('u', '1', uint8_t)
        CASE('u', '2', uint16_t)
        CASE('u', '4', uint32_t)
        CASE('u', '8', uint64_t)
#undef CASE
    default: { /* <f2 */
        uint16_t v;
        memcpy(&v, p, sizeof v);
        return half(v);
    }
    }
}

struct difference {
    double abs, largest, rel; /* largest |a - b|, largest finite |b|, abs / largest */
    uint64_t at;              /* of the largest difference */
    uint64_t unequal;         /* values that are not the same number */
    uint64_t nan, nan_at;     /* NaN in one array only; where first */
};

/* Two NaNs are equal, and so are infinities of one sign. NaN takes no part in abs. */
static struct difference compare(const k3_npy *a, const k3_npy *b)
{
    struct difference d = {0};
    for (uint64_t i = 0; i < a->count; i++) {
        long double x = value_at(a, i), y = value_at(b, i);
        if (isfinite(y))
            d.largest = fmax(d.largest, (double)fabsl(y));
        if (x == y || (isnan(x) && isnan(y)))
            continue;
        d.unequal++;
        if (isnan(x) || isnan(y)) {
            if (!d.nan++)
                d.nan_at = i;
        } else if ((double)fabsl(x - y) > d.abs) {
            d.abs = (double)fabsl(x - y);
            d.at = i;
        }
    }
    d.rel = d.abs == 0 ? 0 : isinf(d.abs) || d.largest == 0 ? INFINITY : d.abs / d.largest;
    return d;
}

/* ---- the answer ---- */

/* "[1, 7, 93]" of flat index i */
static char *place_text(char *buf, const k3_npy *a, uint64_t i)
{
    uint64_t at[K3_NPY_MAXDIM] = {0};
    for (int k = a->ndim; k--; i /= a->shape[k])
        at[k] = i % a->shape[k];
    return shape_text(buf, a->ndim, at);
}

static json_t *real(long double x)
{
    return isfinite(x) ? json_real((double)x) : json_null();
}

static json_t *place_json(const k3_npy *a, uint64_t i)
{
    json_t *list = json_array();
    uint64_t size = a->count;
    for (int k = 0; k < a->ndim; k++) {
        size /= a->shape[k];
        json_array_append_new(list, json_integer((json_int_t)(i / size)));
        i %= size;
    }
    return list;
}

static int print_json(const struct difference *d, const k3_npy *a, const k3_npy *b, bool within, k3_err *err)
{
    json_t *root = json_pack("{s:I, s:I, s:I, s:o, s:o, s:o, s:b}", "values", (json_int_t)a->count, "unequal",
                             (json_int_t)d->unequal, "nan_in_one", (json_int_t)d->nan, "max_abs", real(d->abs),
                             "max_rel", real(d->rel), "largest", real(d->largest), "within", within);
    if (root && d->abs > 0) {
        json_object_set_new(root, "at", place_json(a, d->at));
        json_object_set_new(root, "a", real(value_at(a, d->at)));
        json_object_set_new(root, "b", real(value_at(b, d->at)));
    }
    if (root && d->nan)
        json_object_set_new(root, "nan_at", place_json(a, d->nan_at));
    int bad = !root || json_dumpf(root, stdout, 0) || putchar('\n') == EOF;
    json_decref(root);
    return bad ? k3_fail_write(err, "standard output") : 0;
}

static void print_text(const struct difference *d, const k3_npy *a, const k3_npy *b)
{
    char place[K3_SHAPE_TEXT];
    printf("max abs %.9g", d->abs);
    if (d->abs > 0)
        printf(" at %s: %.9Lg and %.9Lg", place_text(place, a, d->at), value_at(a, d->at), value_at(b, d->at));
    printf("\nmax rel %.9g of the largest value %.9g\n", d->rel, d->largest);
    printf("%" PRIu64 " of %" PRIu64 " values differ\n", d->unequal, a->count);
    if (d->nan)
        printf("%" PRIu64 " NaN in one array only, first at %s\n", d->nan, place_text(place, a, d->nan_at));
}

/* Numbers of one kind compare whatever their width: '<f8' with '<f4', '<i8' with '|u1'. */
static bool is_float(const k3_npy *a)
{
    return a->dtype[1] == 'f';
}

static int same_kind(const k3_npy *a, const k3_npy *b, const layer_opts *o, k3_err *err)
{
    char x[K3_SHAPE_TEXT], y[K3_SHAPE_TEXT];
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape))
        return k3_fail(err, K3_EDATA, "%s has shape %s, %s has %s", o->a, shape_text(x, a->ndim, a->shape), o->b,
                       shape_text(y, b->ndim, b->shape));
    if (is_float(a) != is_float(b))
        return k3_fail(err, K3_EDATA, "%s has dtype %s, %s has %s: floats compare with floats, integers with integers", o->a,
                       a->dtype, o->b, b->dtype);
    return 0;
}

static int verdict(const struct difference *d, const layer_opts *o, k3_err *err)
{
    if (d->nan)
        return k3_fail(err, K3_EDATA, "%s and %s: %" PRIu64 " values are NaN in one of them only", o->a, o->b,
                       d->nan);
    if (o->tol_abs >= 0 && d->abs > o->tol_abs)
        return k3_fail(err, K3_EDATA, "%s and %s differ by %.6g, more than --tol-abs %g", o->a, o->b, d->abs,
                       o->tol_abs);
    /* --tol-abs alone sets no bound on the relative difference. */
    if ((o->tol >= 0 || o->tol_abs < 0) && d->rel > fmax(o->tol, 0))
        return k3_fail(err, K3_EDATA, "%s and %s differ by %.6g of the largest value, more than --tol %g", o->a, o->b,
                       d->rel, fmax(o->tol, 0));
    return 0;
}

int layer_diff(const layer_opts *o, k3_err *err)
{
    k3_npy a = {0}, b = {0};
    k3_err beyond = {0};
    int status;
    if (!(status = read_array(o->a, &a, err)) && !(status = read_array(o->b, &b, err)) &&
        !(status = same_kind(&a, &b, o, err))) {
        struct difference d = compare(&a, &b);
        int out = verdict(&d, o, &beyond);
        if (o->json)
            status = print_json(&d, &a, &b, !out, err);
        else
            print_text(&d, &a, &b);
        if (!status && out) {
            *err = beyond;
            status = out;
        }
    }
    k3_npy_free(&a);
    k3_npy_free(&b);
    return status;
}
