/* SPDX-License-Identifier: Apache-2.0 */
/* Signals and the temporaries that must not outlive them. */
#define _GNU_SOURCE
#include "k3_base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

volatile sig_atomic_t k3_interrupted;

/* The handler reads this table, so entries are marked in use after they are written. */
enum { MAX_TEMPS = 8 };
static char temp_path[MAX_TEMPS][4096];
static volatile sig_atomic_t temp_used[MAX_TEMPS];
static pthread_mutex_t temp_lock = PTHREAD_MUTEX_INITIALIZER;
static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
static bool only_flag;
static int wake[2] = {-1, -1}; /* a pipe that holds a byte once a signal came */

static void remove_temps(void)
{
    for (int i = 0; i < MAX_TEMPS; i++)
        if (temp_used[i])
            unlink(temp_path[i]);
}

static void on_signal(int sig)
{
    if (only_flag && !k3_interrupted) {
        int e = errno;
        k3_interrupted = sig;
        if (write(wake[1], "", 1) < 0)
            errno = e; /* no pipe: a read is only woken if the signal finds it blocked */
        return;
    }
    remove_temps();
    signal(sig, SIG_DFL);
    raise(sig);
}

static void install(void)
{
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++) {
        struct sigaction old, act = {.sa_handler = on_signal};
        sigemptyset(&act.sa_mask);
        if (sigaction(caught[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(caught[i], &act, NULL);
    }
}

void k3_catch_signals(void)
{
    if (wake[0] < 0 && pipe2(wake, O_CLOEXEC | O_NONBLOCK))
        wake[0] = wake[1] = -1;
    only_flag = true;
    install();
}

void k3_catch_again(void)
{
    char byte;
    while (wake[0] >= 0 && read(wake[0], &byte, 1) > 0)
        ;
    k3_interrupted = 0;
}

ssize_t k3_read_wait(int fd, void *buf, size_t size)
{
    struct pollfd p[2] = {{.fd = fd, .events = POLLIN}, {.fd = wake[0], .events = POLLIN}};
    ssize_t n;
    do {
        while (!k3_interrupted && poll(p, 2, -1) < 0 && errno == EINTR)
            ;
        if (k3_interrupted) {
            errno = EINTR;
            return -1;
        }
        n = read(fd, buf, size);
    } while (n < 0 && errno == EINTR);
    return n;
}

void k3_die_by_signal(void)
{
    int sig = k3_interrupted ? k3_interrupted : SIGINT;
    remove_temps();
    signal(sig, SIG_DFL);
    raise(sig);
}

void k3_temp_add(const char *path)
{
    install();
    pthread_mutex_lock(&temp_lock);
    for (int i = 0; i < MAX_TEMPS; i++)
        if (!temp_used[i]) {
            if (strlen(path) < sizeof temp_path[i]) {
                strcpy(temp_path[i], path);
                temp_used[i] = 1;
            }
            break;
        }
    pthread_mutex_unlock(&temp_lock);
}

void k3_temp_remove(const char *path)
{
    pthread_mutex_lock(&temp_lock);
    for (int i = 0; i < MAX_TEMPS; i++)
        if (temp_used[i] && !strcmp(temp_path[i], path))
            temp_used[i] = 0;
    pthread_mutex_unlock(&temp_lock);
}
