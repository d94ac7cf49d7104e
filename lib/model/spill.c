/* SPDX-License-Identifier: Apache-2.0 */
/* KDA state that does not fit: kept in an unlinked file, two layers in memory.
 *
 * Layers come round in a fixed order, so while one is used a thread writes the
 * one before back and reads the one after, and neither is waited for unless
 * the disk is slower than the layer. */
#define _GNU_SOURCE
#include "pass.h"
#include "k3_direct.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { BUFFERS = 2 };

struct spill {
    int fd;
    uint64_t bytes;          /* of one layer, a multiple of 4096 */
    uint32_t n;              /* KDA layers */
    uint8_t *mem;            /* [BUFFERS][bytes] */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    uint64_t loaded;         /* turns whose layer is in memory */
    uint64_t left;           /* turns the caller is done with */
    uint64_t turn;           /* turn the caller is in or waits for */
    bool stop, started;
    k3_err failure;
    uint64_t read_bytes, write_bytes;
};

static int move(struct spill *s, bool out, uint64_t turn)
{
    uint8_t *p = s->mem + turn % BUFFERS * s->bytes;
    uint64_t at = turn % s->n * s->bytes, done = 0;
    while (done < s->bytes) {
        ssize_t got = out ? pwrite(s->fd, p + done, s->bytes - done, (off_t)(at + done))
                          : pread(s->fd, p + done, s->bytes - done, (off_t)(at + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : EIO;
            return k3_fail_errno(&s->failure, "scratch file", "cannot %s %" PRIu64 " bytes at byte %" PRIu64,
                                 out ? "write" : "read", s->bytes, at);
        }
        done += (uint64_t)got;
    }
    __atomic_fetch_add(out ? &s->write_bytes : &s->read_bytes, s->bytes, __ATOMIC_RELAXED);
    return 0;
}

/* Turn t uses layer t % n. Turn t's buffer is free once turn t - BUFFERS is left and written. */
static void *mover(void *arg)
{
    struct spill *s = arg;
    uint64_t next = 0; /* the turn to load */
    pthread_mutex_lock(&s->lock);
    while (!s->stop && !s->failure.status) {
        if (next >= s->left + BUFFERS) {
            pthread_cond_wait(&s->change, &s->lock);
            continue;
        }
        pthread_mutex_unlock(&s->lock);
        int status = next >= BUFFERS ? move(s, true, next - BUFFERS) : 0;
        if (!status && next < s->n)
            memset(s->mem + next % BUFFERS * s->bytes, 0, s->bytes);
        else if (!status)
            status = move(s, false, next);
        pthread_mutex_lock(&s->lock);
        if (!status)
            s->loaded = ++next;
        pthread_cond_broadcast(&s->change);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

int k3_spill_enter(struct spill *s, uint32_t index, float **layer, k3_err *err)
{
    pthread_mutex_lock(&s->lock);
    while (s->loaded <= s->turn && !s->failure.status)
        pthread_cond_wait(&s->change, &s->lock);
    int status = s->failure.status;
    if (status)
        *err = s->failure;
    else if (s->turn % s->n != index)
        status = k3_fail(err, K3_ESYS, "scratch file: layer %" PRIu32 " out of turn", index);
    *layer = (float *)(void *)(s->mem + s->turn % BUFFERS * s->bytes);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void k3_spill_leave(struct spill *s)
{
    pthread_mutex_lock(&s->lock);
    s->left = ++s->turn;
    pthread_cond_broadcast(&s->change);
    pthread_mutex_unlock(&s->lock);
}

uint64_t k3_spill_memory(uint64_t layer_floats)
{
    return BUFFERS * ((layer_floats * sizeof(float) + 4095) / 4096 * 4096);
}

static int open_scratch(const char *dir, k3_err *err, int *out)
{
    struct statfs fs;
    if (statfs(dir, &fs))
        return k3_fail_errno(err, dir, "cannot use it for scratch");
    if (fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC)
        return k3_fail(err, K3_EUSAGE, "%s: scratch space must be on a disk, this is memory (tmpfs); use --scratch DIR", dir);
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600);
    if (fd < 0)
        fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) { /* file systems without O_TMPFILE */
        char path[4096];
        snprintf(path, sizeof path, "%s/k3.scratch.XXXXXX", dir);
        if ((fd = mkostemp(path, O_CLOEXEC)) >= 0)
            unlink(path);
    }
    if (fd < 0)
        return k3_fail_errno(err, dir, "cannot create a scratch file");
    *out = fd;
    return 0;
}

int k3_spill_new(struct spill **out, const char *dir, uint32_t layers, uint64_t layer_floats, k3_err *err)
{
    struct spill *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return k3_fail(err, K3_ESYS, "out of memory");
    s->n = layers;
    s->bytes = k3_spill_memory(layer_floats) / BUFFERS;
    int status = open_scratch(dir, err, &s->fd);
    if (status) {
        free(s);
        return status;
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->change, NULL);
    int e = posix_fallocate(s->fd, 0, (off_t)(s->bytes * layers));
    if (e) {
        errno = e;
        status = k3_fail_errno(err, dir, "no room for %" PRIu64 " bytes of scratch", s->bytes * layers);
    } else if (!(s->mem = k3_big_alloc(BUFFERS * s->bytes, false))) {
        status = k3_fail(err, K3_ESYS, "out of memory for two layers of state");
    } else if (k3_thread_start(&s->thread, mover, s)) {
        status = k3_fail(err, K3_ESYS, "cannot start the scratch thread");
    } else {
        s->started = true;
    }
    if (status)
        k3_spill_free(s);
    else
        *out = s;
    return status;
}

void k3_spill_free(struct spill *s)
{
    if (!s)
        return;
    if (s->started) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_cond_broadcast(&s->change);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->thread, NULL);
    }
    k3_big_free(s->mem, BUFFERS * s->bytes);
    close(s->fd);
    pthread_mutex_destroy(&s->lock);
    pthread_cond_destroy(&s->change);
    free(s);
}

void k3_spill_traffic(struct spill *s, uint64_t *read_bytes, uint64_t *write_bytes)
{
    *read_bytes = __atomic_load_n(&s->read_bytes, __ATOMIC_RELAXED);
    *write_bytes = __atomic_load_n(&s->write_bytes, __ATOMIC_RELAXED);
}
