/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for the C library's calls; passes everything on while nothing is armed. */
#define _GNU_SOURCE
#include "faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static atomic_uint armed;
static atomic_long left, most_read;
static int failure;

void faults_arm(unsigned calls, long after, int error)
{
    failure = error;
    atomic_store(&left, after);
    atomic_store(&armed, calls);
}

void faults_short_reads(long most)
{
    atomic_store(&most_read, most);
}

void faults_off(void)
{
    atomic_store(&armed, 0);
    atomic_store(&most_read, 0);
}

static int strikes(unsigned call)
{
    return (atomic_load(&armed) & call) && atomic_fetch_sub(&left, 1) <= 0;
}

/* -1 with errno, unless the fault is a kill. */
static int strike(void)
{
    if (!failure)
        raise(SIGKILL);
    errno = failure;
    return -1;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    if (strikes(FAULT_PWRITE)) {
        if (!failure && n > 1)
            syscall(SYS_pwrite64, fd, buf, n >= 8192 ? n / 8192 * 4096 : n / 2, at);
        return strike();
    }
    return syscall(SYS_pwrite64, fd, buf, n, at);
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    long most = atomic_load(&most_read);
    if (strikes(FAULT_PREAD))
        return strike();
    return syscall(SYS_pread64, fd, buf, most && n > (size_t)most ? (size_t)most : n, at);
}

int fsync(int fd)
{
    return strikes(FAULT_FSYNC) ? strike() : (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    return strikes(FAULT_RENAME) ? strike() : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}
