/* SPDX-License-Identifier: Apache-2.0 */
/* shim_io.so, preloaded: makes chosen reads and writes fail, fall short, or bring a signal.
 * K3_FAULTS="CALL FILE [from=N] [to=N] [after=N] [times=N] [direct] ACTION; ..."
 *   CALL    read (pread), write (pwrite) or alloc (posix_fallocate)
 *   FILE    a part of the open file's path; a scratch file without a name is "(deleted)"
 *   from to the call must touch a byte in [from, to)
 *   after   lets that many such calls pass first
 *   times   at most so often
 *   direct  only descriptors opened with O_DIRECT
 *   ACTION  EIO ENOSPC EINTR EINVAL, short=N (at most N bytes), sleep=N (milliseconds before the call), SIGINT or SIGKILL
 * The first rule that fits a call is the one that counts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_RULES = 8 };
struct rule {
    char call[8], file[256];
    long long from, to, after, times, at_most, sleep_ms;
    bool direct;
    int error, signal;
};
static struct rule rules[MAX_RULES];
static int nrules;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool named(struct rule *r, const char *word)
{
    static const struct {
        const char *name;
        int error, signal;
    } actions[] = {{"EIO", EIO, 0}, {"ENOSPC", ENOSPC, 0}, {"EINTR", EINTR, 0}, {"EINVAL", EINVAL, 0},
                   {"SIGINT", 0, SIGINT}, {"SIGKILL", 0, SIGKILL}};
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
        if (!strcmp(word, actions[i].name)) {
            r->error = actions[i].error;
            r->signal = actions[i].signal;
            return true;
        }
    return false;
}

static void parse_rule(char *text)
{
    struct rule r = {.to = -1, .times = -1, .at_most = -1};
    char *save, *word = strtok_r(text, " ", &save);
    bool bad = !word || nrules == MAX_RULES;
    snprintf(r.call, sizeof r.call, "%s", word ? word : "");
    word = strtok_r(NULL, " ", &save);
    snprintf(r.file, sizeof r.file, "%s", word ? word : "");
    while (!bad && (word = strtok_r(NULL, " ", &save))) {
        if (!strcmp(word, "direct"))
            r.direct = true;
        else if (sscanf(word, "from=%lld", &r.from) != 1 && sscanf(word, "to=%lld", &r.to) != 1 &&
                 sscanf(word, "after=%lld", &r.after) != 1 && sscanf(word, "times=%lld", &r.times) != 1 &&
                 sscanf(word, "short=%lld", &r.at_most) != 1 && sscanf(word, "sleep=%lld", &r.sleep_ms) != 1)
            bad = !named(&r, word);
    }
    if (bad || (r.at_most < 0 && !r.sleep_ms && !r.error && !r.signal)) {
        fprintf(stderr, "shim_io: cannot understand K3_FAULTS near \"%s\"\n", text);
        _exit(99);
    }
    rules[nrules++] = r;
}

static void parse(void)
{
    char *save, *text = strdup(getenv("K3_FAULTS") ? getenv("K3_FAULTS") : "");
    for (char *rule = strtok_r(text, ";", &save); rule; rule = strtok_r(NULL, ";", &save))
        parse_rule(rule);
    free(text);
}

/* The rule that strikes this call, or NULL. */
static const struct rule *strikes(const char *call, int fd, long long at, long long n)
{
    char link[64], path[4096];
    struct rule *found = NULL;
    pthread_once(&once, parse);
    if (!nrules)
        return NULL;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof path - 1);
    path[len < 0 ? 0 : len] = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < nrules && !found; i++) {
        struct rule *r = &rules[i];
        if (strcmp(r->call, call) || !strstr(path, r->file) || at + n <= r->from || (r->to >= 0 && at >= r->to) ||
            (r->direct && !(fcntl(fd, F_GETFL) & O_DIRECT)))
            continue;
        if (r->after > 0)
            r->after--;
        else if (r->times)
            found = r;
        if (found && r->times > 0)
            r->times--;
    }
    pthread_mutex_unlock(&lock);
    if (found && found->sleep_ms)
        usleep((useconds_t)(found->sleep_ms * 1000));
    if (found && found->signal)
        kill(getpid(), found->signal);
    return found;
}

static size_t limit(const struct rule *r, size_t n)
{
    return r && r->at_most >= 0 && n > (size_t)r->at_most ? (size_t)r->at_most : n;
}

ssize_t pread(int fd, void *buf, size_t n, off_t at)
{
    const struct rule *r = strikes("read", fd, at, (long long)n);
    if (r && r->error) {
        errno = r->error;
        return -1;
    }
    return syscall(SYS_pread64, fd, buf, limit(r, n), at);
}

ssize_t pread64(int fd, void *buf, size_t n, off_t at)
{
    return pread(fd, buf, n, at);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    const struct rule *r = strikes("write", fd, at, (long long)n);
    if (r && r->error) {
        errno = r->error;
        return -1;
    }
    return syscall(SYS_pwrite64, fd, buf, limit(r, n), at);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off_t at)
{
    return pwrite(fd, buf, n, at);
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    const struct rule *r = strikes("alloc", fd, at, n);
    if (r && r->error)
        return r->error;
    return syscall(SYS_fallocate, fd, 0, at, n) ? errno : 0;
}

int posix_fallocate64(int fd, off_t at, off_t n)
{
    return posix_fallocate(fd, at, n);
}
