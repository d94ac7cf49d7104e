/* SPDX-License-Identifier: Apache-2.0 */
/* k3_probe.h - how fast a file's device delivers, measured the way k3-decode reads. */
#ifndef K3_PROBE_H
#define K3_PROBE_H

#include "k3_direct.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct k3_probe {
    uint64_t bytes, reads;
    double seconds;
    bool direct;      /* the page cache was bypassed */
} k3_probe;

typedef struct k3_probe_opts {
    uint64_t size;    /* bytes of a read */
    uint32_t depth;   /* threads that read */
    double seconds;
    bool in_order;    /* piece after piece, as a trunk is read; otherwise at random places, as experts are */
    bool huge;        /* into huge pages, if the kernel gives them */
} k3_probe_opts;

/* Reads for about `seconds`, each thread at least once. The file must be at least `size` long. */
int k3_probe_file(k3_probe *result, const char *path, const k3_probe_opts *o, k3_err *err);

#ifdef __cplusplus
}
#endif

#endif
