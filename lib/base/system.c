/* The clock, memory high water mark, and how many threads the machine gives us. */
#define _GNU_SOURCE
#include "k3_base.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double k3_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

uint64_t k3_peak_rss(void)
{
    char line[256];
    uint64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %" SCNu64, &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

/* The first number in a small file, or -1. */
static long read_long(const char *path)
{
    long v = -1;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%ld", &v) != 1)
        v = -1;
    if (f)
        fclose(f);
    return v;
}

/* True if no smaller-numbered CPU of the mask is a hyper-thread of the same core. */
static bool first_of_core(int cpu, const cpu_set_t *mask)
{
    char path[96], list[256];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f)
        return true;
    bool first = true;
    if (fgets(list, sizeof list, f))
        for (char *p = list; *p && first;) {
            char *end;
            long a = strtol(p, &end, 10), b = a;
            if (end == p)
                break;
            if (*end == '-')
                b = strtol(end + 1, &end, 10);
            for (long c = a; c <= b && c < cpu; c++)
                if (CPU_ISSET((size_t)c, mask))
                    first = false;
            p = *end == ',' ? end + 1 : end;
            if (*end != ',')
                break;
        }
    fclose(f);
    return first;
}

/* Whole CPUs that the cgroup's quota allows, or a large number. */
static int quota_cpus(void)
{
    char line[4096], path[4200];
    FILE *f = fopen("/proc/self/cgroup", "re");
    int least = 1 << 20;
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *dir = strrchr(line, ':');
        if (!dir)
            continue;
        dir++;
        /* From the process's own group up to the root. */
        for (;;) {
            long quota = -1, period = -1;
            if (!strncmp(line, "0::", 3)) {
                snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", dir);
                FILE *g = fopen(path, "re");
                if (g && fscanf(g, "%ld %ld", &quota, &period) != 2)
                    quota = -1;
                if (g)
                    fclose(g);
            } else if (strstr(line, ":cpu,") || strstr(line, ",cpu:") || strstr(line, ":cpu:")) {
                snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_quota_us", dir);
                quota = read_long(path);
                snprintf(path, sizeof path, "/sys/fs/cgroup/cpu%s/cpu.cfs_period_us", dir);
                period = read_long(path);
            }
            if (quota > 0 && period > 0) {
                int cpus = (int)((quota + period - 1) / period);
                least = cpus < least ? cpus : least;
            }
            char *slash = strrchr(dir, '/');
            if (!slash || !dir[1])
                break;
            slash[slash == dir] = 0;
        }
    }
    if (f)
        fclose(f);
    return least < 1 ? 1 : least;
}

int k3_threads_default(void)
{
    cpu_set_t mask;
    int cores = 0, quota = quota_cpus();
    if (sched_getaffinity(0, sizeof mask, &mask))
        return 1;
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET((size_t)c, &mask) && first_of_core(c, &mask))
            cores++;
    cores = cores < quota ? cores : quota;
    return cores < 1 ? 1 : cores;
}
