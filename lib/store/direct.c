/* SPDX-License-Identifier: Apache-2.0 */
/* Direct reads, with the page cache as the fallback. */
#define _GNU_SOURCE
#include "k3_direct.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

/* The alignment that the kernel states for direct reads of this file; 0 if it does not say, -1 for none at all. */
static int64_t stated_alignment(int fd)
{
#ifdef STATX_DIOALIGN
    struct statx sx;
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) || !(sx.stx_mask & STATX_DIOALIGN))
        return 0;
    if (!sx.stx_dio_offset_align)
        return -1;
    return sx.stx_dio_offset_align > sx.stx_dio_mem_align ? sx.stx_dio_offset_align : sx.stx_dio_mem_align;
#else
    (void)fd;
    return 0;
#endif
}

/* The least of 512 and 4096 with which a read works, or 0. */
static uint32_t probe_alignment(int fd)
{
    char *buf = aligned_alloc(K3_DIRECT_ALIGN, K3_DIRECT_ALIGN);
    uint32_t found = 0;
    for (uint32_t a = 512; buf && a <= K3_DIRECT_ALIGN && !found; a *= 8)
        if (pread(fd, buf, a, 0) >= 0)
            found = a;
    free(buf);
    return found;
}

int k3_direct_open(k3_direct *d, const char *path, bool plain, bool *fallback, k3_err *err)
{
    *d = (k3_direct){.fd = -1, .plain_fd = open(path, O_RDONLY | O_CLOEXEC), .align = 1};
    if (fallback)
        *fallback = false;
    if (d->plain_fd < 0)
        return k3_fail_errno(err, path, "cannot open");
    if (!(d->path = strdup(path))) {
        close(d->plain_fd);
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    }
    d->fd = d->plain_fd;
    if (plain)
        return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECT);
    int64_t align = fd < 0 ? -1 : stated_alignment(fd);
    if (align == 0)
        align = probe_alignment(fd);
    if (align <= 0 || align > K3_DIRECT_ALIGN) {
        if (fd >= 0)
            close(fd);
        if (fallback)
            *fallback = true;
        return 0;
    }
    d->fd = fd;
    d->align = (uint32_t)align;
    return 0;
}

void k3_direct_close(k3_direct *d)
{
    if (!d->path)
        return;
    if (d->fd != d->plain_fd)
        close(d->fd);
    close(d->plain_fd);
    free(d->path);
    d->path = NULL;
}

int k3_direct_read(const k3_direct *d, void *buf, uint64_t offset, uint64_t bytes, const void **data, k3_err *err)
{
    const uint64_t most = 1u << 30;
    uint64_t start = offset / d->align * d->align, skip = offset - start;
    uint64_t want = (skip + bytes + d->align - 1) / d->align * d->align, done = 0;
    int fd = d->fd;
    while (done < skip + bytes) {
        uint64_t part = want - done < most ? want - done : most;
        ssize_t got = pread(fd, (char *)buf + done, part, (off_t)(start + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EINVAL && fd != d->plain_fd) {
            fd = d->plain_fd; /* a file system that promised more than it keeps */
            continue;
        }
        if (got < 0)
            return k3_fail_errno(err, d->path, "cannot read %" PRIu64 " bytes at byte %" PRIu64, bytes, offset);
        if (!got)
            return k3_fail_at(err, K3_EDATA, d->path, NULL, (int64_t)offset, "the file ends after %" PRIu64 " of %" PRIu64 " bytes",
                              done > skip ? done - skip : 0, bytes);
        done += (uint64_t)got;
        /* A direct read goes on at an aligned place only. */
        if (done < skip + bytes && done % d->align) {
            if ((uint64_t)got >= d->align)
                done = done / d->align * d->align;
            else
                fd = d->plain_fd;
        }
    }
    *data = (const char *)buf + skip;
    return 0;
}

/* Whole pages, which may be larger than what direct reads want. */
static uint64_t big_size(uint64_t bytes)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), grain = page > K3_DIRECT_ALIGN ? page : K3_DIRECT_ALIGN;
    return (bytes + grain - 1) / grain * grain;
}

void *k3_big_alloc(uint64_t bytes, bool huge)
{
    uint64_t size = big_size(bytes);
    huge = huge && size >= HUGE_PAGE;
    uint64_t extra = huge ? HUGE_PAGE : 0;
    char *p = mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (!huge) {
        madvise(p, size, MADV_NOHUGEPAGE);
        return p;
    }
    char *q = (char *)(((uintptr_t)p + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    if (q > p)
        munmap(p, (size_t)(q - p));
    if (q + size < p + size + extra)
        munmap(q + size, (size_t)(p + size + extra - (q + size)));
    /* Whole huge pages only: a partial one at the end would be counted beyond the plan. */
    madvise(q, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    if (size % HUGE_PAGE)
        madvise(q + size / HUGE_PAGE * HUGE_PAGE, size % HUGE_PAGE, MADV_NOHUGEPAGE);
    return q;
}

void k3_big_free(void *p, uint64_t bytes)
{
    if (p)
        munmap(p, big_size(bytes));
}
