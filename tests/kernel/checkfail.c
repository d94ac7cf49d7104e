/* SPDX-License-Identifier: Apache-2.0 */
/* checkfail - that checkkern's checks can fail: each kernel below has one small fault, which must be found, with the
 * kernel and the size named.
 */
#include <sys/wait.h>

#include "cases.h"

static const k3_kernels *good;

/* One bit of the last product of several tokens. */
static void wrong_mm_bf16(float *out, size_t ldo, const k3_weights *w, const k3_vectors *x, const k3_work *work)
{
    good->mm_bf16(out, ldo, w, x, work);
    float *last = out + (x->n - 1) * ldo + w->rows - 1;
    if (x->n > 1)
        *last = bits_to_float(float_to_bits(*last) ^ 1);
}

/* Scale byte 255 as if it were 2^128. */
static void wrong_mxfp4_decode(float *out, const uint8_t *packed, const uint8_t *scale, size_t n)
{
    good->mxfp4_decode(out, packed, scale, n);
    for (size_t i = 0; i < n; i++)
        if (scale[i / 32] == 255)
            out[i] = INFINITY;
}

/* A tail of one element is left out. */
static float wrong_max(const float *x, size_t n)
{
    return good->max(x, n > 1 && n % 16 == 1 ? n - 1 : n);
}

/* Only in place. */
static void wrong_situ(float *out, const float *g, const float *u, size_t n, float b1, float b2)
{
    good->situ(out, g, u, n, b1, b2);
    if (out == g)
        out[n - 1] = bits_to_float(float_to_bits(out[n - 1]) ^ 1);
}

/* Denormal results are flushed. */
static void wrong_exp(float *out, const float *x, size_t n)
{
    good->exp(out, x, n);
    for (size_t i = 0; i < n; i++)
        out[i] = out[i] < 0x1p-126f ? 0 : out[i];
}

/* One element too many is written. */
static void wrong_silu(float *x, size_t n)
{
    good->silu(x, n);
    *(volatile float *)(x + n) = 0;
}

/* One element too many is read. */
static void wrong_widen_bf16(float *out, const uint16_t *in, size_t n)
{
    (void)*(const volatile uint16_t *)(in + n);
    good->widen_bf16(out, in, n);
}

/* Runs in a child, as some faults end the process; 0 if it was found and named. */
static int found(const struct kernel *k, const k3_kernels *wrong)
{
    char text[4096] = "", named[64];
    int pipes[2], status = 0;
    size_t have = 0;
    if (pipe(pipes))
        guard_fail("pipe");
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        guard_fail("fork");
    if (child == 0) {
        dup2(pipes[1], 1);
        signal(SIGSEGV, on_fault);
        test t = {.K = wrong, .random = 1};
        run_kernel(&t, k);
        fflush(stdout);
        _exit(t.failed);
    }
    close(pipes[1]);
    for (ssize_t n; have < sizeof text - 1 && (n = read(pipes[0], text + have, sizeof text - 1 - have)) > 0;)
        have += (size_t)n;
    close(pipes[0]);
    waitpid(child, &status, 0);
    snprintf(named, sizeof named, "FAIL wrong %s n=", k->name);
    if (status && strncmp(text, named, strlen(named)) == 0 && strstr(text, " rows=") && strstr(text, " random="))
        return 0;
    printf("FAIL checkkern finds no fault in a wrong %s: status %#x, \"%s\"\n", k->name, status, text);
    return 1;
}

int main(void)
{
    k3_prog_start("checkfail");
    k3_err err = {0};
    if (!(good = k3_kernels_select(NULL, &err)))
        return k3_report_error(&err);
    k3_kernels wrong = *good;
    int n = 0, missed = 0;
    wrong.name = "wrong";
    wrong.mm_bf16 = wrong_mm_bf16;
    wrong.mxfp4_decode = wrong_mxfp4_decode;
    wrong.max = wrong_max;
    wrong.situ = wrong_situ;
    wrong.exp = wrong_exp;
    wrong.silu = wrong_silu;
    wrong.widen_bf16 = wrong_widen_bf16;
    static const char *const names[] = {"mm_bf16", "mxfp4_decode", "max", "situ", "exp", "silu", "widen_bf16"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int k = 0; k < KERNELS; k++)
            if (strcmp(kernels[k].name, names[i]) == 0) {
                missed += found(&kernels[k], &wrong);
                n++;
            }
    printf("%d passed, %d failed, 0 skipped\n", n - missed, missed);
    return k3_prog_end(missed != 0);
}
