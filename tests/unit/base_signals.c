/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for input must not outlast a signal, whenever it comes and whichever thread takes it. */
#include "k3_base.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

Test(base_signals, before_the_read, .timeout = 30)
{
    int p[2];
    char c;
    cr_assert(!pipe(p));
    k3_catch_signals();
    raise(SIGTERM);
    cr_expect_eq(k3_read_wait(p[0], &c, 1), -1);
    cr_expect_eq(errno, EINTR);
    cr_expect_eq(k3_interrupted, SIGTERM);
}

static void *signal_here(void *arg)
{
    (void)arg;
    pthread_kill(pthread_self(), SIGINT);
    return NULL;
}

Test(base_signals, taken_by_another_thread, .timeout = 30)
{
    int p[2];
    char c;
    pthread_t t;
    cr_assert(!pipe(p));
    k3_catch_signals();
    cr_assert(!pthread_create(&t, NULL, signal_here, NULL));
    cr_expect_eq(k3_read_wait(p[0], &c, 1), -1); /* its read is never interrupted itself */
    cr_expect_eq(k3_interrupted, SIGINT);
    pthread_join(t, NULL);
}

Test(base_signals, data_end_and_errors, .timeout = 30)
{
    int p[2];
    char buf[8];
    cr_assert(!pipe(p));
    k3_catch_signals();
    cr_assert(write(p[1], "abc", 3) == 3);
    cr_expect_eq(k3_read_wait(p[0], buf, sizeof buf), 3);
    close(p[1]);
    cr_expect_eq(k3_read_wait(p[0], buf, sizeof buf), 0);
    int fd = open("/dev/null", O_WRONLY);
    cr_expect_eq(k3_read_wait(fd, buf, sizeof buf), -1);
    cr_expect_eq(errno, EBADF);
    close(fd);
    fd = open("/", O_RDONLY);
    cr_expect_eq(k3_read_wait(fd, buf, sizeof buf), -1);
    cr_expect_eq(errno, EISDIR);
}
