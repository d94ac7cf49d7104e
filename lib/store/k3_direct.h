/* SPDX-License-Identifier: Apache-2.0 */
/* k3_direct.h - reads that bypass the page cache where the file system allows
 * it, and ordinary ones where it does not.
 */
#ifndef K3_DIRECT_H
#define K3_DIRECT_H

#include "k3_base.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { K3_DIRECT_ALIGN = 4096 }; /* buffers and slack are made for this */

typedef struct k3_direct {
    char *path;
    int fd;            /* for direct reads, or the same as plain_fd */
    int plain_fd;
    uint32_t align;    /* of offset, length and memory of a direct read; 1 if not direct */
} k3_direct;

/* Bytes that a buffer for `bytes` at any offset needs. */
static inline uint64_t k3_direct_room(uint64_t bytes)
{
    return (bytes + 3 * (uint64_t)K3_DIRECT_ALIGN - 1) / K3_DIRECT_ALIGN * K3_DIRECT_ALIGN;
}

/* Opens for reading; direct unless `plain`. The kernel is asked for the
 * alignment (statx), else a read is tried. Where direct reads are not to be
 * had the handle reads through the page cache; *fallback (may be NULL) says so. */
int k3_direct_open(k3_direct *d, const char *path, bool plain, bool *fallback, k3_err *err);
void k3_direct_close(k3_direct *d);

/* `bytes` at `offset` into buf, which is K3_DIRECT_ALIGN aligned and has
 * k3_direct_room(bytes); *data points at the first byte wanted inside buf.
 * Reads of at most 1 GiB; short reads are continued. K3_EDATA if the file ends
 * first, K3_ESYS on an I/O error, both with the offset. */
int k3_direct_read(const k3_direct *d, void *buf, uint64_t offset, uint64_t bytes, const void **data, k3_err *err);

/* Memory for such buffers: zeroed, K3_DIRECT_ALIGN aligned, on huge pages if
 * `huge` and the kernel gives them. NULL when out of memory. Pages count as used when touched. */
void *k3_big_alloc(uint64_t bytes, bool huge);
void k3_big_free(void *p, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
