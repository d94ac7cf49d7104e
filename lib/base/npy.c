/* SPDX-License-Identifier: Apache-2.0 */
/* .npy arrays: versions 1 and 2 in, version 1 out; C order, little endian. */
#include "k3_base.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[6] = "\x93NUMPY";
static const char *const dtypes[] = {"<f4", "<f8", "<f2", "<i4", "<i8", "<u4", "<u8", "<u2", "<i2", "|u1", "|i1"};

static size_t item_size(const char *dtype)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (!strcmp(dtype, dtypes[i]))
            return (size_t)(dtype[2] - '0');
    return 0;
}

static int read_all(FILE *from, const char *name, void *buf, size_t n, const char *what, k3_err *err)
{
    size_t got = fread(buf, 1, n, from);
    if (got == n)
        return 0;
    if (ferror(from))
        return k3_fail_errno(err, name, "cannot read");
    return k3_fail(err, K3_EDATA, "%s: not a whole .npy array: %s ends after %zu of %zu bytes", name, what, got, n);
}

/* The text after `'key':`, blanks skipped, or NULL. */
static const char *value_of(const char *head, const char *key)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", key);
    const char *p = strstr(head, quoted);
    if (!p)
        return NULL;
    p += strlen(quoted);
    p += strspn(p, " ");
    if (*p++ != ':')
        return NULL;
    return p + strspn(p, " ");
}

static int bad_head(k3_err *err, const char *name, const char *what)
{
    return k3_fail(err, K3_EDATA, "%s: bad .npy header: %s", name, what);
}

static int parse_shape(const char *p, const char *name, k3_npy *a, k3_err *err)
{
    if (!p || *p++ != '(')
        return bad_head(err, name, "no shape");
    a->count = 1;
    for (;;) {
        p += strspn(p, " ,");
        if (*p == ')')
            return 0;
        if (!isdigit((unsigned char)*p) || a->ndim == K3_NPY_MAXDIM)
            return bad_head(err, name, "odd shape");
        char *end;
        errno = 0;
        a->shape[a->ndim] = strtoull(p, &end, 10);
        if (errno || !k3_mul_u64(a->count, a->shape[a->ndim], &a->count))
            return bad_head(err, name, "the shape overflows");
        a->ndim++;
        p = end;
    }
}

static int parse_head(const char *head, const char *name, k3_npy *a, k3_err *err)
{
    const char *descr = value_of(head, "descr"), *order = value_of(head, "fortran_order");
    if (!descr || *descr != '\'' || strlen(descr) < 5 || descr[4] != '\'')
        return bad_head(err, name, "no plain dtype");
    memcpy(a->dtype, descr + 1, 3);
    a->itemsize = item_size(a->dtype);
    if (!a->itemsize)
        return k3_fail(err, K3_EDATA, "%s: dtype \"%s\" is not supported", name, a->dtype);
    if (!order || strncmp(order, "False", 5))
        return bad_head(err, name, "only C order is supported");
    return parse_shape(value_of(head, "shape"), name, a, err);
}

int k3_npy_read(FILE *from, const char *name, k3_npy *a, k3_err *err)
{
    unsigned char pre[12];
    memset(a, 0, sizeof *a);
    int status = read_all(from, name, pre, 10, "the header", err);
    if (status)
        return status;
    if (memcmp(pre, magic, 6) || (pre[6] != 1 && pre[6] != 2))
        return k3_fail(err, K3_EDATA, "%s: not a .npy file", name);
    size_t n = pre[8] | (size_t)pre[9] << 8;
    if (pre[6] == 2) {
        if ((status = read_all(from, name, pre + 10, 2, "the header", err)))
            return status;
        n |= (size_t)pre[10] << 16 | (size_t)pre[11] << 24;
    }
    if (n > 65536)
        return bad_head(err, name, "longer than 65536 bytes");
    char *head = malloc(n + 1);
    if (!head)
        return k3_fail(err, K3_ESYS, "%s: out of memory", name);
    if (!(status = read_all(from, name, head, n, "the header", err))) {
        head[n] = 0;
        status = parse_head(head, name, a, err);
    }
    free(head);
    uint64_t bytes;
    if (!status && (!k3_mul_u64(a->count, a->itemsize, &bytes) || bytes > SIZE_MAX / 2))
        status = bad_head(err, name, "the shape overflows");
    if (status)
        return status;
    if (!(a->data = malloc(bytes ? bytes : 1)))
        return k3_fail(err, K3_ESYS, "%s: out of memory for %" PRIu64 " bytes", name, bytes);
    if ((status = read_all(from, name, a->data, bytes, "the data", err)))
        k3_npy_free(a);
    return status;
}

void k3_npy_free(k3_npy *a)
{
    free(a->data);
    a->data = NULL;
}

int k3_npy_write_header(FILE *to, const char *name, const char *dtype, int ndim, const uint64_t *shape, k3_err *err)
{
    char head[512], dims[320] = "";
    size_t n = 0;
    for (int i = 0; i < ndim; i++)
        n += (size_t)snprintf(dims + n, sizeof dims - n, i ? ", %" PRIu64 : "%" PRIu64, shape[i]);
    int len = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s%s), }", dtype, dims,
                       ndim == 1 ? "," : "");
    size_t total = 10 + (size_t)len + 1 <= 128 ? 128 : (10 + (size_t)len + 1 + 63) / 64 * 64;
    size_t field = total - 10;
    unsigned char pre[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)field, (unsigned char)(field >> 8)};
    memset(head + len, ' ', field - 1 - (size_t)len);
    head[field - 1] = '\n';
    if (fwrite(pre, 1, 10, to) != 10 || fwrite(head, 1, field, to) != field)
        return k3_fail_write(err, name);
    return 0;
}

int k3_npy_write(FILE *to, const char *name, const char *dtype, int ndim, const uint64_t *shape, const void *data,
                 k3_err *err)
{
    uint64_t count = 1;
    for (int i = 0; i < ndim; i++)
        count *= shape[i];
    int status = k3_npy_write_header(to, name, dtype, ndim, shape, err);
    if (!status && fwrite(data, item_size(dtype), count, to) != count)
        status = k3_fail_write(err, name);
    return status;
}
