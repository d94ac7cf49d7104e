/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, talk on stderr, and the first and last call of main. */
#include "k3_base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *k3_prog = "k3";
int k3_verbosity = 0;

static int fail_v(k3_err *err, int status, const char *file, const char *tensor, int64_t offset, const char *fmt,
                  va_list ap)
{
    if (!err)
        return status;
    size_t n = 0;
    err->status = status;
    err->offset = offset;
    snprintf(err->file, sizeof err->file, "%s", file ? file : "");
    snprintf(err->tensor, sizeof err->tensor, "%s", tensor ? tensor : "");
    err->text[0] = 0;
    if (file)
        n += (size_t)snprintf(err->text, sizeof err->text, "%.1000s: ", file);
    if (tensor)
        n += (size_t)snprintf(err->text + n, sizeof err->text - n, "tensor \"%.255s\": ", tensor);
    int m = vsnprintf(err->text + n, sizeof err->text - n, fmt, ap);
    if (m > 0)
        n += (size_t)m;
    if (offset >= 0 && n < sizeof err->text)
        snprintf(err->text + n, sizeof err->text - n, " (at byte %lld)", (long long)offset);
    return status;
}

int k3_fail(k3_err *err, int status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_v(err, status, NULL, NULL, -1, fmt, ap);
    va_end(ap);
    return status;
}

int k3_fail_at(k3_err *err, int status, const char *file, const char *tensor, int64_t offset, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fail_v(err, status, file, tensor, offset, fmt, ap);
    va_end(ap);
    return status;
}

int k3_fail_errno(k3_err *err, const char *file, const char *fmt, ...)
{
    int e = errno;
    va_list ap;
    va_start(ap, fmt);
    fail_v(err, K3_ESYS, file, NULL, -1, fmt, ap);
    va_end(ap);
    if (err) {
        size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, ": %s", strerror(e));
    }
    errno = e;
    return K3_ESYS;
}

int k3_fail_write(k3_err *err, const char *name)
{
    if (errno == EPIPE)
        return k3_fail(err, K3_EPIPE, "%s: the reader went away", name);
    if (!errno) /* the stream was in error already, and nobody knows of what */
        return k3_fail(err, K3_ESYS, "%s: cannot write: a write before failed", name);
    return k3_fail_errno(err, name, "cannot write");
}

/* One line of valid UTF-8: what could break it or a terminal is escaped. */
static void put_line(const char *text)
{
    char out[64 + 4 * sizeof((k3_err *)0)->text]; /* an escape has at most four bytes for each it stands for */
    size_t n = (size_t)snprintf(out, 64, "%.60s: ", k3_prog);
    n += k3_printable(out + n, sizeof out - 1 - n, text);
    out[n++] = '\n';
    k3_progress_end();
    fwrite(out, 1, n, stderr);
}

void k3_note(const char *fmt, ...)
{
    if (k3_verbosity < 0)
        return;
    char text[sizeof((k3_err *)0)->text];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    put_line(text);
}

/* A write has met EPIPE and was reported: stdout stays in error, with nothing more to say. */
static bool reader_gone;

int k3_report_error(const k3_err *err)
{
    if (err->status == K3_EPIPE) {
        reader_gone = true;
        return 0;
    }
    put_line(err->text);
    return err->status ? err->status : K3_ESYS;
}

/* A stand-in on which the wrong direction fails: reads of 0, writes of 1 and 2. */
static void stand_in(int fd)
{
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF)
        return;
    int got = open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
    if (got >= 0 && got != fd) {
        dup2(got, fd);
        close(got);
    }
}

void k3_prog_start(const char *name)
{
    k3_prog = name;
    for (int fd = 0; fd < 3; fd++)
        stand_in(fd);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an error of the write: EFBIG */
}

int k3_prog_end(int status)
{
    k3_err err = {0};
    errno = 0;
    if (!reader_gone && (fflush(stdout) == EOF || ferror(stdout))) {
        int s = k3_fail_write(&err, "standard output");
        if (!status && s != K3_EPIPE)
            status = k3_report_error(&err);
    }
    return status == K3_EPIPE ? 0 : status;
}
