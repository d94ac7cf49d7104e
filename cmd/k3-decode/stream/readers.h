/* SPDX-License-Identifier: Apache-2.0 */
/* readers.h - the inside of a weight source: state machines under one lock, and the threads that feed them.
 *
 * Threads: the caller's, which computes; `depth` readers, which do nothing but read, so that the device has its next read
 * within microseconds of the last; and, where there are checksums, checkers, which yield their core to arithmetic. No
 * other file of this folder starts a thread.
 *
 *   field of struct streamer            guarded by
 *   ring, experts, tune                 lock. Memory of a tile or expert belongs to the one thread that its state names:
 *                                       READING its reader, CHECKING its checker, READY the caller
 *   flight, stop, tile_failure,         lock
 *   expert_failure, times
 *   base.traffic                        lock
 *   base.reading                        the caller's thread
 *   storage                             see storage.h
 *   thread, nthreads                    the caller's thread
 *   sizes, c, *_memory, expert_room     nothing: they do not change while threads run
 */
#ifndef READERS_H
#define READERS_H

#include "experts.h"
#include "ring.h"
#include "storage.h"
#include "stream.h"
#include "tune.h"

/* Reads that are going on. */
struct flight {
    uint64_t bytes, most_bytes; /* no read starts while so many bytes are in flight */
    uint32_t reads;
    double busy;             /* seconds in which there was one */
    double since;            /* when that was last brought up to date */
};

struct streamer {
    k3_source base;
    struct stream_sizes sizes;
    const k3_config *c;
    struct storage storage;
    uint8_t *ring_memory, *pin_memory, *expert_memory;
    uint64_t ring_bytes, pin_bytes, expert_bytes; /* of those */
    uint64_t buffer_bytes, expert_room; /* of one tile buffer, of one expert */

    pthread_mutex_t lock;
    pthread_cond_t work;     /* for readers: something may be read */
    pthread_cond_t landed;   /* for checkers: something may be checked */
    pthread_cond_t done;     /* for the caller: something may be used, or has failed */
    struct ring ring;
    struct experts experts;
    struct tune tune;
    struct flight flight;
    bool stop;
    k3_err tile_failure, expert_failure; /* the first of each; status 0: none */
    double wait_trunk, wait_experts; /* seconds the caller waited */

    pthread_t *thread;
    uint32_t nthreads;
};

/* Starts sizes.depth readers and sizes.checkers checkers. */
int readers_start(struct streamer *s, k3_err *err);
/* Waits for the reads that are going on and ends all threads; again is fine. */
void readers_stop(struct streamer *s);

#endif
