/* SPDX-License-Identifier: Apache-2.0 */
/* One line on the terminal that is rewritten in place. */
#include "k3_base.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROOM = 512 };

int k3_progress_mode = K3_PROGRESS_AUTO;
static bool shown;
static double last;

/* Columns of the terminal on standard error; 0: it is none. */
static int columns(void)
{
    struct winsize w;
    if (!isatty(2))
        return 0;
    return ioctl(2, TIOCGWINSZ, &w) || w.ws_col < 2 ? 80 : w.ws_col;
}

void k3_progress(bool force, const char *fmt, ...)
{
    char text[ROOM], line[4 * ROOM]; /* an escape has at most four bytes for each it stands for */
    double now = k3_now();
    int wide = k3_progress_mode == K3_PROGRESS_OFF || k3_verbosity < 0 ? 0 : columns();
    bool log = !wide && k3_progress_mode == K3_PROGRESS_ON && k3_verbosity >= 0; /* no terminal: lines, and fewer of them */
    if ((!wide && !log) || (!force && now - last < (log ? 5 : 0.1)))
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    /* In the last column the cursor of some terminals would go to the next line. */
    k3_printable(line, wide && (size_t)wide < sizeof line ? (size_t)wide : sizeof line, text);
    if (log) {
        fprintf(stderr, "%s\n", line);
    } else {
        fprintf(stderr, "\r%s\033[K", line);
        shown = true;
    }
    fflush(stderr);
    last = now;
}

void k3_progress_bytes(const char *verb, uint64_t done, uint64_t total, double began)
{
    char a[24], b[24], c[24];
    double seconds = k3_now() - began, rate = seconds > 0 ? (double)done / seconds : 0;
    uint64_t left = rate > 0 ? (uint64_t)((double)(total - done) / rate + 0.5) : 0;
    k3_progress(false, "%s: %s %s of %s (%.0f %%), %s/s, %" PRIu64 ":%02" PRIu64 " left", k3_prog, verb, k3_fmt_bytes(a, done),
                k3_fmt_bytes(b, total), total ? 100 * (double)done / (double)total : 100, k3_fmt_bytes(c, (uint64_t)rate), left / 60,
                left % 60);
}

void k3_progress_end(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}
