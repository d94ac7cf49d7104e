/* SPDX-License-Identifier: Apache-2.0 */
/* PATH.part: written tile by tile, taken up again after a kill, put in place when whole. */
#define _GNU_SOURCE
#include "trunk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* ---- beginning and taking up -------------------------------------------------------- */

/* Where the file really goes: a link is followed, so that it stays a link. */
static int find_target(const char *path, char **target, k3_err *err)
{
    struct stat st;
    bool link = !lstat(path, &st) && S_ISLNK(st.st_mode);
    if (link && stat(path, &st))
        return k3_fail_errno(err, path, "a link that leads nowhere");
    if (!stat(path, &st) && !S_ISREG(st.st_mode))
        return k3_fail(err, K3_ESYS, "%s: exists and is not a regular file", path);
    *target = link ? realpath(path, NULL) : strdup(path);
    return *target ? 0 : k3_fail_errno(err, path, "cannot find its folder");
}

static int lock(int fd, const char *path, struct stat *st, k3_err *err)
{
    if (fstat(fd, st))
        return k3_fail_errno(err, path, "cannot stat");
    if (!S_ISREG(st->st_mode))
        return k3_fail(err, K3_ESYS, "%s: exists and is not a regular file", path);
    if (!flock(fd, LOCK_EX | LOCK_NB))
        return 0;
    if (errno == EWOULDBLOCK)
        return k3_fail(err, K3_ESYS, "%s: another process is packing to it", path);
    return k3_fail_errno(err, path, "cannot lock");
}

/* Opens and locks the part; the one that has the name, not one that was just renamed away. */
static int open_locked(struct part *p, k3_err *err)
{
    for (int tries = 0; tries < 100; tries++) {
        struct stat mine, named;
        int fd = open(p->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        if (fd < 0)
            return k3_fail_errno(err, p->path, "cannot create (-o FILE packs to another place)");
        int status = lock(fd, p->path, &mine, err);
        if (!status && !stat(p->path, &named) && named.st_ino == mine.st_ino && named.st_dev == mine.st_dev) {
            p->fd = fd;
            return 0;
        }
        close(fd);
        if (status)
            return status;
    }
    return k3_fail(err, K3_ESYS, "%s: is created and removed by another process", p->path);
}

/* Why the part at hand cannot be gone on with; NULL if it can. */
static const char *why_not(const union trunk_head_block *got, const struct trunk_head *want)
{
    struct trunk_head a = got->head;
    bool part = !memcmp(a.magic, TRUNK_PART_MAGIC, 8), whole = !memcmp(a.magic, TRUNK_MAGIC, 8);
    if ((!part && !whole) || got->word[TRUNK_BLOCK / 8 - 1] != k3_trunk_head_sum(got))
        return "is damaged";
    if (a.version != want->version || !k3_fingerprint_equal(a.source, want->source))
        return "is of another checkpoint";
    if (a.state != want->state)
        return "was begun before a shard changed";
    if (a.tile_bytes != want->tile_bytes)
        return "has another tile size";
    memcpy(a.magic, want->magic, 8);
    a.table_sum = want->table_sum;
    return memcmp(&a, want, sizeof a) ? "has another reading order" : NULL;
}

static int write_by(const struct part *p, int fd, const void *data, uint64_t bytes, uint64_t offset, k3_err *err)
{
    const char *from = data;
    for (uint64_t done = 0; done < bytes;) {
        ssize_t n = pwrite(fd, from + done, bytes - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL && fd != p->fd) {
            fd = p->fd; /* a file system that takes no direct writes, or none that go on where a short one ended */
            continue;
        }
        if (n < 0 && (errno == ENOSPC || errno == EDQUOT))
            return k3_fail_errno(err, p->path, "the file system is full (-o FILE packs to another place)");
        if (n < 0)
            return k3_fail_errno(err, p->path, "cannot write %" PRIu64 " bytes at byte %" PRIu64, bytes - done, offset + done);
        done += (uint64_t)n;
    }
    return 0;
}

static int write_all(const struct part *p, const void *data, uint64_t bytes, uint64_t offset, k3_err *err)
{
    return write_by(p, p->fd, data, bytes, offset, err);
}

static int write_head(struct part *p, k3_err *err)
{
    p->block.word[TRUNK_BLOCK / 8 - 1] = k3_trunk_head_sum(&p->block);
    return write_all(p, &p->block, sizeof p->block, 0, err);
}

/* Its full length from the start: writes that make a file longer wait for each other. */
static int whole_length(struct part *p, k3_err *err)
{
    if (ftruncate(p->fd, (off_t)p->block.head.file_bytes))
        return k3_fail_errno(err, p->path, "cannot make it %" PRIu64 " bytes long", p->block.head.file_bytes);
    return write_head(p, err);
}

static int begin(struct part *p, k3_err *err)
{
    p->fresh = true;
    /* Nothing of an older part may come back after a power cut, so its end is made to last first. */
    if (ftruncate(p->fd, 0) || fsync(p->fd))
        return k3_fail_errno(err, p->path, "cannot empty");
    return whole_length(p, err);
}

/* The entries on record that are as expected, into the table. */
static int take_up(struct part *p, k3_err *err)
{
    const struct trunk_head *h = &p->block.head;
    struct stat st;
    struct trunk_entry *old = calloc(1, h->table_bytes);
    if (!old)
        return k3_fail(err, K3_ESYS, "%s: out of memory for its table", p->path);
    int status = fstat(p->fd, &st) ? k3_fail_errno(err, p->path, "cannot stat") : 0;
    uint64_t size = status ? 0 : (uint64_t)st.st_size, end = h->table_offset + h->table_bytes;
    if (!status && size > h->table_offset)
        status = k3_pread_full(p->fd, p->path, old, (size < end ? size : end) - h->table_offset, h->table_offset, err);
    for (uint64_t i = 0; i < h->tiles && !status; i++) {
        struct trunk_entry want = p->table[i];
        want.sum = old[i].sum;
        want.stored = STORED_PLAIN;
        if (memcmp(&want, &old[i], sizeof want))
            continue;
        p->table[i] = want;
        p->resumed = true;
    }
    free(old);
    return status ? status : whole_length(p, err);
}

int k3_part_open(struct part *p, const char *path, const struct trunk_head *head, struct trunk_entry *table, bool plain,
              k3_err *err)
{
    union trunk_head_block old;
    struct stat st;
    *p = (struct part){.fd = -1, .direct_fd = -1, .table = table};
    p->block.head = *head;
    int status = find_target(path, &p->target, err);
    if (status)
        return status;
    if (asprintf(&p->path, "%s.part", p->target) < 0) {
        p->path = NULL;
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    }
    if ((status = open_locked(p, err)))
        return status;
    p->direct_fd = plain ? -1 : open(p->path, O_WRONLY | O_CLOEXEC | O_DIRECT);
    if (p->direct_fd < 0)
        p->direct_fd = p->fd;
    if (fstat(p->fd, &st))
        return k3_fail_errno(err, p->path, "cannot stat");
    if (!st.st_size)
        return begin(p, err);
    memset(&old, 0, sizeof old);
    uint64_t got = (uint64_t)st.st_size < sizeof old ? (uint64_t)st.st_size : sizeof old;
    if ((status = k3_pread_full(p->fd, p->path, &old, got, 0, err)))
        return status;
    const char *why = why_not(&old, head);
    if (!why)
        return take_up(p, err);
    k3_note("%s %s; beginning anew", p->path, why);
    return begin(p, err);
}

/* ---- tiles ------------------------------------------------------------------------------ */

/* Makes a hole of the tile's place again; false if the file system cannot. */
static bool punch(const struct part *p, const struct trunk_entry *e)
{
    return !fallocate(p->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)e->offset, (off_t)trunk_padded(e->bytes));
}

int k3_part_write(struct part *p, uint32_t tile, const uint8_t *data, uint64_t *written, k3_err *err)
{
    const struct trunk_entry *e = &p->table[tile];
    bool holes = p->fresh || punch(p, e);
    *written = 0;
    for (uint64_t at = 0; at < e->bytes;) {
        uint64_t end = at;
        while (end < e->bytes && !(holes && trunk_is_zero(data + end, TRUNK_BLOCK)))
            end += TRUNK_BLOCK;
        int status = write_by(p, p->direct_fd, data + at, end - at, e->offset + at, err);
        if (status)
            return status;
        *written += (end < e->bytes ? end : e->bytes) - at;
        at = end + TRUNK_BLOCK; /* over the zero block that ended the run */
    }
    /* Starts the disk now: one flush of everything at the end would leave it idle until then. */
    if (*written && p->direct_fd == p->fd)
        sync_file_range(p->fd, (off_t)e->offset, e->bytes, SYNC_FILE_RANGE_WRITE);
    return 0;
}

int k3_part_record(struct part *p, uint32_t tile, uint64_t sum, k3_err *err)
{
    struct trunk_entry e = p->table[tile];
    e.sum = sum;
    e.stored = STORED_PLAIN;
    int status = write_all(p, &e, sizeof e, p->block.head.table_offset + tile * sizeof e, err);
    if (!status)
        p->table[tile] = e;
    return status;
}

/* ---- the end ------------------------------------------------------------------------------ */

int k3_part_finish(struct part *p, k3_err *err)
{
    struct trunk_head *h = &p->block.head;
    memcpy(h->magic, TRUNK_MAGIC, 8);
    h->table_sum = XXH3_64bits(p->table, h->table_bytes);
    int status = write_all(p, p->table, h->table_bytes, h->table_offset, err);
    if (status)
        return status;
    struct trunk_end end = {.magic = TRUNK_END, .file_bytes = h->file_bytes, .head_sum = k3_trunk_head_sum(&p->block)};
    if ((status = write_all(p, &end, sizeof end, h->file_bytes - sizeof end, err)) || (status = write_head(p, err)))
        return status;
    if (fsync(p->fd))
        return k3_fail_errno(err, p->path, "cannot flush to disk");
    return k3_put_in_place(p->path, p->target, err);
}

void k3_part_close(struct part *p, bool keep)
{
    if (p->direct_fd >= 0 && p->direct_fd != p->fd)
        close(p->direct_fd);
    if (p->fd >= 0) {
        if (!keep)
            unlink(p->path); /* still locked, so it is ours */
        close(p->fd);
    }
    free(p->target);
    free(p->path);
    free(p->table);
}
