/* SPDX-License-Identifier: Apache-2.0 */
/* trunk_help.h - packing in tests. */
#ifndef TRUNK_HELP_H
#define TRUNK_HELP_H

#include "k3_trunk.h"
#include "store_help.h"

#include <fcntl.h>
#include <sys/stat.h>

#define TINY "tests/fixtures/tiny/model"

static inline k3_index *index_of(const char *dir)
{
    k3_index *ix;
    k3_err err = {0};
    cr_assert_eq(k3_index_build(&ix, dir, 1, &err), 0, "%s", err.text);
    return ix;
}

static inline int pack(const k3_index *ix, const char *path, uint64_t tile, int depth, k3_pack_state *done, k3_err *err)
{
    k3_pack_opts o = {.tile_bytes = tile, .threads = 2, .depth = depth};
    return k3_trunk_pack(ix, path, &o, done, err);
}

static inline void pack_well(const k3_index *ix, const char *path, uint64_t tile, int depth, k3_pack_state *done)
{
    k3_err err = {0};
    int status = pack(ix, path, tile, depth, done, &err);
    cr_assert_eq(status, 0, "%s", err.text);
}

static inline char *load_file(const char *path, size_t *size)
{
    char *data;
    k3_err err = {0};
    cr_assert_eq(k3_read_file(path, 1 << 30, &data, size, &err), 0, "%s", err.text);
    return data;
}

static inline void put_bytes(const char *path, uint64_t at, const void *data, size_t n)
{
    int fd = open(path, O_RDWR);
    cr_assert(fd >= 0 && pwrite(fd, data, n, (off_t)at) == (ssize_t)n && !close(fd), "%s", path);
}

/* Changes one byte; a second time changes it back. */
static inline void flip(const char *path, uint64_t at)
{
    char c;
    int fd = open(path, O_RDWR);
    cr_assert(fd >= 0 && pread(fd, &c, 1, (off_t)at) == 1, "%s at %lu", path, (unsigned long)at);
    c = (char)(c ^ 0x40);
    cr_assert(pwrite(fd, &c, 1, (off_t)at) == 1 && !close(fd));
}

static inline bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static inline uint64_t disk_bytes(const char *path)
{
    struct stat st;
    cr_assert_eq(stat(path, &st), 0, "%s", path);
    return (uint64_t)st.st_blocks * 512;
}

#endif
