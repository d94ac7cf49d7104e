/* k3_probe.h - how fast a file's device delivers, measured the way k3-decode reads. */
#ifndef K3_PROBE_H
#define K3_PROBE_H

#include "k3_direct.h"

typedef struct k3_probe {
    uint64_t bytes, reads;
    double seconds;
    bool direct;      /* the page cache was bypassed */
} k3_probe;

/* Reads `size` bytes at random places of the file with `depth` threads for
 * about `seconds`, each of them at least once, into huge pages if `huge` and the kernel gives them.
 * The file must be at least `size` long. */
int k3_probe_file(k3_probe *result, const char *path, uint64_t size, uint32_t depth, double seconds, bool huge, k3_err *err);

#endif
