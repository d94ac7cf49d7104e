/* SPDX-License-Identifier: Apache-2.0 */
/* .npy arrays: numpy's own bytes in and out, and every way a file can be wrong. */
#include "k3_base.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtypes[] = {"<f4", "<f8", "<f2", "<i4", "<i8", "<u4", "<u8", "<u2", "<i2", "|u1", "|i1"};

static int read_bytes(const void *data, size_t size, k3_npy *a, k3_err *err)
{
    FILE *f = size ? fmemopen((void *)(uintptr_t)data, size, "r") : fopen("/dev/null", "r");
    memset(err, 0, sizeof *err);
    int status = k3_npy_read(f, "x.npy", a, err);
    fclose(f);
    return status;
}

/* A version 1 file with this dictionary and `data` bytes of data; returns its size. */
static size_t build(char *buf, const char *dict, size_t data)
{
    size_t n = strlen(dict);
    memcpy(buf, "\x93NUMPY\x01\x00", 8);
    buf[8] = (char)n;
    buf[9] = (char)(n >> 8);
    memcpy(buf + 10, dict, n);
    memset(buf + 10 + n, 7, data);
    return 10 + n + data;
}

Test(base_npy, numpy_wrote_the_same_bytes)
{
    static const char *const path[] = {"tests/fixtures/tiny/expected/sea.logits.npy", "tests/fixtures/tiny/expected/sea.layers.npy",
                                       "tests/fixtures/tiny/expected/sea.experts.npy"};
    for (size_t i = 0; i < sizeof path / sizeof *path; i++) {
        char *want, *have = NULL;
        size_t size, n;
        k3_err err = {0};
        k3_npy a;
        cr_assert_eq(k3_read_file(path[i], 64 << 20, &want, &size, &err), 0, "%s", err.text);
        cr_assert_eq(read_bytes(want, size, &a, &err), 0, "%s", err.text);
        FILE *f = open_memstream(&have, &n);
        cr_assert_eq(k3_npy_write(f, "y.npy", a.dtype, a.ndim, a.shape, a.data, &err), 0, "%s", err.text);
        fclose(f);
        cr_expect(n == size && !memcmp(have, want, n), "%s changed on the way", path[i]);
        k3_npy_free(&a);
        free(want);
        free(have);
    }
}

Test(base_npy, every_dtype_and_rank_returns)
{
    static const uint64_t shape[] = {1, 3, 2, 1, 2, 1, 5, 1}; /* 60 elements in full rank */
    uint8_t data[60 * 8];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (int rank = 0; rank <= K3_NPY_MAXDIM; rank++) {
            char *buf = NULL;
            size_t n;
            uint64_t count = 1;
            k3_err err = {0};
            k3_npy a;
            for (int i = 0; i < rank; i++)
                count *= shape[i];
            FILE *f = open_memstream(&buf, &n);
            cr_assert_eq(k3_npy_write(f, "y", dtypes[d], rank, shape, data, &err), 0, "%s", err.text);
            fclose(f);
            size_t item = (size_t)(dtypes[d][2] - '0');
            cr_expect_eq((n - count * item) % 64, 0, "the data is not aligned");
            if (rank <= 3)
                cr_expect_eq(n - count * item, 128);
            cr_assert_eq(read_bytes(buf, n, &a, &err), 0, "%s rank %d: %s", dtypes[d], rank, err.text);
            cr_expect(a.ndim == rank && a.count == count && a.itemsize == item && !strcmp(a.dtype, dtypes[d]));
            cr_expect(!memcmp(a.shape, shape, (size_t)rank * sizeof *shape) && !memcmp(a.data, data, count * item));
            k3_npy_free(&a);
            for (size_t cut = 0; cut < n; cut += rank == 2 ? 1 : 61)
                cr_expect(read_bytes(buf, cut, &a, &err) == K3_EDATA && !a.data, "%zu of %zu bytes passed", cut, n);
            free(buf);
        }
}

Test(base_npy, headers_that_are_refused)
{
    static const struct {
        const char *dict, *word;
    } bad[] = {
        {"", "dtype"},
        {"{}", "dtype"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", "C order"},
        {"{'descr': '<f4', 'shape': (2,), }", "C order"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", ">f4"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (2,), }", "<c8"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "dtype"},
        {"{'descr': '<U12', 'fortran_order': False, 'shape': (2,), }", "dtype"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", "dtype"},
        {"{'descr': '<f4', 'fortran_order': False, }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 2, }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, -1), }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.5,), }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (a,), }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "shape"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551616,), }", "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,), }", "overflow"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3000000000000000000,), }", "overflow"},
        {"{'descr': '<f4'", "C order"},
    };
    char buf[1024];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        k3_npy a;
        k3_err err;
        size_t n = build(buf, bad[i].dict, 64);
        cr_expect_eq(read_bytes(buf, n, &a, &err), K3_EDATA, "passed: %s", bad[i].dict);
        cr_expect(strstr(err.text, "x.npy") && strstr(err.text, bad[i].word), "%s: %s", bad[i].dict, err.text);
        cr_expect_null(a.data);
    }
}

Test(base_npy, other_files_and_versions)
{
    static const char ok[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
    char buf[256], v2[256];
    k3_npy a;
    k3_err err;
    size_t n = build(buf, ok, 8);
    cr_expect_eq(read_bytes(buf, n, &a, &err), 0, "%s", err.text);
    k3_npy_free(&a);
    /* version 2 has a length word of four bytes */
    memcpy(v2, "\x93NUMPY\x02\x00", 8);
    memcpy(v2 + 8, (char[]){sizeof ok - 1, 0, 0, 0}, 4);
    memcpy(v2 + 12, buf + 10, n - 10);
    cr_expect_eq(read_bytes(v2, n + 2, &a, &err), 0, "%s", err.text);
    cr_expect(a.count == 2 && ((char *)a.data)[0] == 7);
    k3_npy_free(&a);
    v2[10] = 0x7f; /* 8 MB of header */
    cr_expect_eq(read_bytes(v2, n + 2, &a, &err), K3_EDATA);
    cr_expect(strstr(err.text, "longer than 65536") != NULL, "%s", err.text);
    buf[6] = 3;
    cr_expect_eq(read_bytes(buf, n, &a, &err), K3_EDATA);
    buf[6] = 1, buf[1] = 'n';
    cr_expect_eq(read_bytes(buf, n, &a, &err), K3_EDATA);
    cr_expect(strstr(err.text, "not a .npy file") != NULL, "%s", err.text);
    static const char zip[] = "PK\003\004 an .npz is a zip file";
    cr_expect_eq(read_bytes(zip, sizeof zip, &a, &err), K3_EDATA);
}

/* Two arrays in one pipe: the reader takes its own bytes and no more. */
Test(base_npy, the_next_array_stays_in_the_stream)
{
    char *buf = NULL;
    size_t n;
    k3_err err = {0};
    const uint64_t shape[2] = {0, 5};
    const float one = 42;
    FILE *f = open_memstream(&buf, &n);
    cr_assert_eq(k3_npy_write(f, "y", "<f4", 2, shape, NULL, &err), 0);
    cr_assert_eq(k3_npy_write(f, "y", "<f4", 0, NULL, &one, &err), 0);
    fclose(f);
    f = fmemopen(buf, n, "r");
    k3_npy a;
    cr_assert_eq(k3_npy_read(f, "x", &a, &err), 0, "%s", err.text);
    cr_expect(a.count == 0 && a.ndim == 2 && a.shape[1] == 5);
    k3_npy_free(&a);
    cr_assert_eq(k3_npy_read(f, "x", &a, &err), 0, "%s", err.text);
    cr_expect(a.count == 1 && a.ndim == 0 && *(float *)a.data == 42);
    k3_npy_free(&a);
    fclose(f);
    free(buf);
}

Test(base_npy, a_full_disk_is_noticed)
{
    const uint64_t shape[1] = {100000};
    float *data = calloc(100000, sizeof *data);
    k3_err err = {0};
    FILE *f = fopen("/dev/full", "w");
    cr_expect_eq(k3_npy_write(f, "full.npy", "<f4", 1, shape, data, &err), K3_ESYS);
    cr_expect(strstr(err.text, "full.npy") && strstr(err.text, "No space left"), "%s", err.text);
    fclose(f);
    free(data);
}
