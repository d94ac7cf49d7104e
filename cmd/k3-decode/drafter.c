/* SPDX-License-Identifier: Apache-2.0 */
/* The program of --draft-from at the other end of two pipes. Neither is ever waited for without a limit: a request that
 * does not fit into the pipe is kept and sent on later, and at most one request is without its answer. */
#define _GNU_SOURCE
#include "drafter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { LONGEST_ANSWER = 1 << 16 }; /* bytes; K3_DRAFT_MAX ids are a hundredth of it */
static const double look_up_s = 0.2; /* a signal that comes just before a wait is seen after it */
static const double grace_s = 0.2; /* to end by itself once its input is closed, and again after SIGTERM */

struct drafter {
    pid_t pid;
    int to, from;           /* our ends of the pipes; -1: closed */
    k3_bytes request;       /* bytes [sent, n) are still to be written */
    size_t sent;
    bool owed;              /* an answer to the last request, which was about the first `at` ids of `line` */
    uint64_t line;
    size_t at;
    bool waited_for;        /* by drafter_propose at this moment */
    k3_id_reader reader;
    size_t answer_bytes;
    uint32_t id[K3_DRAFT_MAX]; /* the answer, [n] once it is whole (`ready`) */
    size_t n;
    bool ready;
    struct drafter_counts counts;
};

/* ---- the process ------------------------------------------------------------- */

static int spawn(struct drafter *d, const char *command, int in, int out)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, usual;
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGPIPE);
    sigaddset(&usual, SIGXFSZ);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawn_file_actions_adddup2(&files, in, 0);
    posix_spawn_file_actions_adddup2(&files, out, 1);
    /* A group of its own: Ctrl-C is for this program, which then ends the group. */
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setsigdefault(&how, &usual);
    posix_spawnattr_setsigmask(&how, &none);
    int e = posix_spawn(&d->pid, "/bin/sh", &files, &how, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&how);
    return e;
}

int drafter_start(struct drafter **out, const char *command, uint64_t vocab, k3_err *err)
{
    int in[2] = {-1, -1}, answers[2] = {-1, -1};
    struct drafter *d = *out = calloc(1, sizeof *d);
    if (!d)
        return k3_fail(err, K3_ESYS, "out of memory");
    d->pid = -1;
    d->to = d->from = -1;
    d->reader = (k3_id_reader){.name = "its answers", .vocab = (uint32_t)vocab};
    if (pipe2(in, O_CLOEXEC) || pipe2(answers, O_CLOEXEC)) {
        int status = k3_fail_errno(err, "--draft-from", "cannot make a pipe");
        close(in[0]);
        close(in[1]);
        return status;
    }
    d->to = in[1];
    d->from = answers[0];
    fcntl(d->to, F_SETFL, O_NONBLOCK);
    fcntl(d->from, F_SETFL, O_NONBLOCK);
    int e = spawn(d, command, in[0], answers[1]);
    close(in[0]);
    close(answers[1]);
    if (!e)
        return 0;
    d->pid = -1;
    errno = e;
    return k3_fail_errno(err, "--draft-from", "cannot start /bin/sh");
}

/* Whether it ends within so many seconds; it stays a zombie, so that its group keeps its number. */
static bool ends_within(pid_t pid, double seconds)
{
    for (double until = k3_now() + seconds;;) {
        siginfo_t info = {0};
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid)
            return true;
        if (k3_now() >= until)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

/* Returns what waitpid says of it, or -1. */
static int end_process(struct drafter *d)
{
    int how = -1;
    if (d->to >= 0)
        close(d->to);
    if (d->from >= 0)
        close(d->from);
    d->to = d->from = -1;
    d->owed = d->ready = false;
    if (d->pid < 0)
        return -1;
    if (!ends_within(d->pid, grace_s)) {
        kill(-d->pid, SIGTERM);
        ends_within(d->pid, grace_s);
    }
    kill(-d->pid, SIGKILL); /* it, or what it has left behind */
    while (waitpid(d->pid, &how, 0) < 0 && errno == EINTR)
        ;
    d->pid = -1;
    return how;
}

void drafter_stop(struct drafter *d)
{
    if (!d)
        return;
    end_process(d);
    k3_bytes_free(&d->request);
    free(d);
}

bool drafter_alive(const struct drafter *d)
{
    return d->pid >= 0;
}

struct drafter_counts drafter_counts(const struct drafter *d)
{
    return d ? d->counts : (struct drafter_counts){0};
}

/* It broke the protocol. */
static void dismiss(struct drafter *d, const char *why)
{
    end_process(d);
    k3_note("warning: --draft-from: %s; going on without drafts", why);
}

static void has_ended(struct drafter *d)
{
    bool itself = ends_within(d->pid, grace_s);
    int how = end_process(d);
    if (itself && WIFEXITED(how))
        k3_note("warning: --draft-from: the command ended with status %d; going on without drafts", WEXITSTATUS(how));
    else if (itself && WIFSIGNALED(how))
        k3_note("warning: --draft-from: the command was ended by signal %d; going on without drafts", WTERMSIG(how));
    else
        k3_note("warning: --draft-from: the command closed its output; going on without drafts");
}

/* ---- what is sent ------------------------------------------------------------- */

/* What the pipe takes now. */
static void send_on(struct drafter *d)
{
    while (d->sent < d->request.n) {
        ssize_t w = write(d->to, d->request.data + d->sent, d->request.n - d->sent);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0 && errno != EAGAIN)
            d->sent = d->request.n; /* it reads no more: its answers, or their end, tell the rest */
        if (w < 0)
            return;
        d->sent += (size_t)w;
    }
    d->request.n = d->sent = 0;
}

/* LINE MOST ID... */
static bool put_request(struct drafter *d, uint64_t line, size_t most, const uint32_t *ids, size_t n)
{
    k3_err err;
    if (k3_bytes_reserve(&d->request, 64 + 11 * n, &err))
        return false;
    char *to = d->request.data + d->request.n;
    to += sprintf(to, "%" PRIu64 " %zu", line, most);
    for (size_t i = 0; i < n; i++) {
        *to++ = ' ';
        to += k3_id_format(to, ids[i]);
    }
    *to++ = '\n';
    d->request.n = (size_t)(to - d->request.data);
    send_on(d);
    return true;
}

void drafter_line_end(struct drafter *d, uint64_t line, size_t told)
{
    if (d && d->pid >= 0 && told)
        put_request(d, line, 0, NULL, 0);
}

/* ---- what comes back ------------------------------------------------------------- */

/* Bytes of answers. False: dismissed. */
static bool take_bytes(struct drafter *d, const char *at, const char *end)
{
    k3_err err;
    d->answer_bytes += (size_t)(end - at);
    while (at < end) {
        uint32_t id;
        if (!d->owed) {
            dismiss(d, "the command wrote more than it was asked for");
            return false;
        }
        int event = k3_id_next(&d->reader, &at, end, &id, &err);
        if (event == K3_ID_VALUE && d->n < K3_DRAFT_MAX) {
            d->id[d->n++] = id;
        } else if (event == K3_ID_LINE) {
            d->owed = false;
            d->ready = true;
            d->counts.answered++;
            d->counts.late += !d->waited_for;
            d->answer_bytes = (size_t)(end - at);
        } else if (event == K3_EDATA) {
            dismiss(d, err.text);
            return false;
        }
    }
    if (d->answer_bytes > LONGEST_ANSWER)
        dismiss(d, "the command wrote 65536 bytes without a line end");
    return d->pid >= 0;
}

/* Sends and receives what there is, or, with `seconds`, until the answer that is owed is there. */
static void exchange(struct drafter *d, double seconds)
{
    char buf[4096];
    for (double until = k3_now() + seconds;;) {
        send_on(d);
        ssize_t got = read(d->from, buf, sizeof buf);
        if (got > 0 && !take_bytes(d, buf, buf + got))
            return;
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            has_ended(d);
            return;
        }
        double left = until - k3_now();
        if (!d->owed || (got <= 0 && (left <= 0 || k3_interrupted)))
            return;
        if (got > 0)
            continue;
        left = left < look_up_s ? left : look_up_s;
        struct pollfd p[2] = {{.fd = d->from, .events = POLLIN}, {.fd = d->sent < d->request.n ? d->to : -1, .events = POLLOUT}};
        struct timespec t = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
        ppoll(p, 2, &t, NULL);
    }
}

/* The part of the answer that follows ids[0..n), if it is about them. */
static size_t take_answer(struct drafter *d, uint64_t line, const uint32_t *ids, size_t n, size_t most, uint32_t *out)
{
    if (!d->ready || d->line != line || d->at > n)
        return 0;
    size_t passed = n - d->at, rest = d->n > passed ? d->n - passed : 0;
    if (!rest || memcmp(d->id, ids + d->at, passed * sizeof *ids))
        return 0;
    rest = rest < most ? rest : most;
    memcpy(out, d->id + passed, rest * sizeof *out);
    return rest;
}

size_t drafter_propose(struct drafter *d, uint64_t line, const uint32_t *ids, size_t n, size_t *told, size_t most,
                       double patience, uint32_t *out)
{
    if (d->pid < 0)
        return 0;
    exchange(d, 0);
    size_t got = take_answer(d, line, ids, n, most, out);
    if (got || d->pid < 0 || patience < 0)
        return got;
    if (!d->owed && !d->request.n) {
        if (!put_request(d, line, most, ids + *told, n - *told))
            return 0;
        *told = n;
        d->line = line;
        d->at = n;
        d->n = d->answer_bytes = 0;
        d->ready = false;
        d->owed = true;
        d->counts.asked++;
    }
    if (d->line != line)
        return 0;
    d->waited_for = patience > 0;
    exchange(d, patience);
    d->waited_for = false;
    return d->pid < 0 ? 0 : take_answer(d, line, ids, n, most, out);
}
