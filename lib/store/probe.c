/* SPDX-License-Identifier: Apache-2.0 */
/* Direct reads against the clock. */
#include "k3_probe.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>

struct probe {
    const k3_direct *file;
    const k3_probe_opts *o;
    uint64_t places, seed;
    _Atomic uint64_t *next; /* read in order: the number of the next piece */
    double until;
    uint64_t reads;
    int status;
    k3_err err;
};

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static uint64_t next_place(struct probe *p)
{
    if (!p->o->in_order)
        return next_random(&p->seed) % p->places * K3_DIRECT_ALIGN;
    uint64_t pieces = ((p->places - 1) * K3_DIRECT_ALIGN + p->o->size) / p->o->size;
    return atomic_fetch_add(p->next, 1) % pieces * p->o->size;
}

static void *probe_reader(void *arg)
{
    struct probe *p = arg;
    uint64_t size = p->o->size;
    /* k3-decode's small reads lie in a large ring: a huge page for them too. */
    enum { HUGE_PAGE = 2 << 20 };
    uint64_t room = k3_direct_room(size);
    if (p->o->huge && room < HUGE_PAGE)
        room = HUGE_PAGE;
    void *buf = k3_big_alloc(room, p->o->huge);
    const void *data;
    if (!buf)
        p->status = k3_fail(&p->err, K3_ESYS, "out of memory for a read of %" PRIu64 " bytes", size);
    while (!p->status && (!p->reads || k3_now() < p->until)) {
        p->status = k3_direct_read(p->file, buf, next_place(p), size, &data, &p->err);
        p->reads++;
    }
    k3_big_free(buf, room);
    return NULL;
}

int k3_probe_file(k3_probe *result, const char *path, const k3_probe_opts *o, k3_err *err)
{
    uint64_t size = o->size;
    k3_direct file;
    struct stat st;
    bool fallback;
    int status = k3_direct_open(&file, path, false, &fallback, err);
    if (status)
        return status;
    struct probe *p = calloc(o->depth, sizeof *p);
    pthread_t *thread = calloc(o->depth, sizeof *thread);
    uint32_t started = 0;
    double t0 = k3_now();
    _Atomic uint64_t next = (uint64_t)(t0 * 1e3); /* begin somewhere else each time */
    if (!p || !thread)
        status = k3_fail(err, K3_ESYS, "out of memory");
    else if (fstat(file.plain_fd, &st))
        status = k3_fail_errno(err, path, "cannot stat");
    else if ((uint64_t)st.st_size < size || !size)
        status = k3_fail(err, K3_EDATA, "%s: %lld bytes are too few to probe with reads of %" PRIu64, path,
                         (long long)st.st_size, size);
    while (!status && started < o->depth) {
        uint64_t places = ((uint64_t)st.st_size - size) / K3_DIRECT_ALIGN + 1;
        p[started] = (struct probe){.file = &file, .o = o, .places = places, .next = &next,
                                    .seed = UINT64_C(0x9e3779b97f4a7c15) * (started + 1), .until = t0 + o->seconds};
        if (k3_thread_start(&thread[started], probe_reader, &p[started]))
            status = k3_fail(err, K3_ESYS, "cannot start reader %" PRIu32, started + 1);
        else
            started++;
    }
    *result = (k3_probe){.direct = !fallback};
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(thread[i], NULL);
        result->reads += p[i].reads;
        if (p[i].status && !status) {
            status = p[i].status;
            *err = p[i].err;
        }
    }
    result->seconds = k3_now() - t0;
    result->bytes = result->reads * size;
    free(p);
    free(thread);
    k3_direct_close(&file);
    return status;
}
