/* One line on the terminal that is rewritten in place. */
#include "k3_base.h"

#include <stdarg.h>
#include <unistd.h>

static bool shown;
static double last;

void k3_progress(bool force, const char *fmt, ...)
{
    static int is_terminal = -1;
    if (is_terminal < 0)
        is_terminal = isatty(2);
    if (!is_terminal || k3_verbosity < 0 || (!force && k3_now() - last < 0.1))
        return;
    va_list ap;
    va_start(ap, fmt);
    fputc('\r', stderr);
    vfprintf(stderr, fmt, ap);
    fputs("\033[K", stderr);
    va_end(ap);
    fflush(stderr);
    shown = true;
    last = k3_now();
}

void k3_progress_end(void)
{
    if (shown)
        fputs("\r\033[K", stderr);
    shown = false;
}
