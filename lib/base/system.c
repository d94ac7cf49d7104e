/* SPDX-License-Identifier: Apache-2.0 */
/* The clock, memory high water mark, and how many threads the machine gives us. */
#define _GNU_SOURCE
#include "k3_base.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
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

/* "7:memory,hugetlb:/a" gives "/a" if the controller is among them, as does "0::/a" (v2); else NULL. */
static char *group_of(char *line, const char *controller, bool *v2)
{
    char *list = strchr(line, ':'), *group = list ? strchr(++list, ':') : NULL, *save;
    if (!group)
        return NULL;
    *group++ = 0;
    *v2 = !*list && !strncmp(line, "0:", 2);
    for (char *name = strtok_r(list, ",", &save); name; name = strtok_r(NULL, ",", &save))
        if (!strcmp(name, controller))
            return group;
    return *v2 ? group : NULL;
}

/* Whole CPUs that the cgroup's quota allows, or a large number. */
static int quota_cpus(void)
{
    char line[4096], path[4200];
    FILE *f = fopen("/proc/self/cgroup", "re");
    int least = 1 << 20;
    while (f && fgets(line, sizeof line, f)) {
        bool v2;
        line[strcspn(line, "\n")] = 0;
        char *dir = group_of(line, "cpu", &v2);
        if (!dir)
            continue;
        /* From the process's own group up to the root. */
        for (;;) {
            long quota = -1, period = -1;
            if (v2) {
                snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", dir);
                FILE *g = fopen(path, "re");
                if (g && fscanf(g, "%ld %ld", &quota, &period) != 2)
                    quota = -1;
                if (g)
                    fclose(g);
            } else {
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

/* "MemAvailable:   123 kB" and the like from /proc/meminfo, in bytes; 0 if absent. */
static uint64_t meminfo(const char *key)
{
    char line[256];
    uint64_t kib = 0;
    size_t n = strlen(key);
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, n) && sscanf(line + n, ": %" SCNu64, &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

/* A number in a file, UINT64_MAX for "max" or none. */
static uint64_t read_limit(const char *dir, const char *group, const char *file)
{
    char path[4400];
    uint64_t v = UINT64_MAX;
    snprintf(path, sizeof path, "%s%s/%s", dir, group, file);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%" SCNu64, &v) != 1)
        v = UINT64_MAX;
    if (f)
        fclose(f);
    return v;
}

/* The file pages of a group's memory.stat, page cache that the kernel can give back, as MemAvailable counts it: those
 * read twice ("active") too, or a model that was read before would shrink the next plan. */
static uint64_t reclaimable(const char *dir, const char *group, bool v2)
{
    char path[4400], name[64];
    uint64_t v, found = 0;
    snprintf(path, sizeof path, "%s%s/memory.stat", dir, group);
    FILE *f = fopen(path, "re");
    while (f && fscanf(f, "%63s %" SCNu64, name, &v) == 2)
        if (!strcmp(name, v2 ? "inactive_file" : "total_inactive_file") || !strcmp(name, v2 ? "active_file" : "total_active_file"))
            found += v;
    if (f)
        fclose(f);
    return found;
}

/* What the group's limit leaves: limit - used + reclaimable, less the kernel's part, which a limit counts and VmHWM
 * does not: tables of pages are 1/512 of what they map, then stacks and buffers. UINT64_MAX without a limit. */
static uint64_t headroom(const char *dir, const char *group, bool v2)
{
    uint64_t limit = read_limit(dir, group, v2 ? "memory.max" : "memory.limit_in_bytes");
    /* Beyond memory.high nothing is killed, but the kernel slows the group to a crawl. */
    uint64_t high = v2 ? read_limit(dir, group, "memory.high") : UINT64_MAX;
    uint64_t used = read_limit(dir, group, v2 ? "memory.current" : "memory.usage_in_bytes");
    uint64_t spare = reclaimable(dir, group, v2);
    limit = high < limit ? high : limit;
    if (limit >= UINT64_MAX / 4 || used == UINT64_MAX)
        return UINT64_MAX;
    used = used > spare ? used - spare : 0;
    uint64_t room = limit > used ? limit - used : 0;
    return room - room / 256;
}

/* What the machine can give. */
static uint64_t available(uint64_t wanted)
{
    uint64_t n = meminfo("MemAvailable");
    struct sysinfo s;
    if (n)
        return n;
    n = sysinfo(&s) ? 0 : ((uint64_t)s.freeram + s.bufferram) * s.mem_unit;
    return wanted > n ? wanted : n;
}

uint64_t k3_memory_limit(uint64_t wanted)
{
    uint64_t least = available(wanted);
    char line[4096];
    FILE *f = fopen("/proc/self/cgroup", "re");
    while (f && fgets(line, sizeof line, f)) {
        bool v2;
        line[strcspn(line, "\n")] = 0;
        char *group = group_of(line, "memory", &v2);
        if (!group)
            continue;
        for (;;) {
            uint64_t room = headroom(v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory", !strcmp(group, "/") ? "" : group, v2);
            least = room < least ? room : least;
            char *slash = strrchr(group, '/');
            if (!slash || !group[1])
                break;
            slash[slash == group] = 0;
        }
    }
    if (f)
        fclose(f);
    return least;
}
