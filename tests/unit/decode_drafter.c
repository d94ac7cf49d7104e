/* SPDX-License-Identifier: Apache-2.0 */
/* The program that drafts, at the other end of two pipes. */
#include "../../cmd/k3-decode/drafter.c"

#include <criterion/criterion.h>
#include <dirent.h>

static size_t open_files(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static struct drafter *begin(const char *command)
{
    struct drafter *d;
    k3_err err = {0};
    signal(SIGPIPE, SIG_IGN);
    k3_verbosity = -1;
    cr_assert(!drafter_start(&d, command, 1000, &err), "%s", err.text);
    return d;
}

/* Only what is new is sent, each line's on its own; the answers here are what was sent. */
Test(decode_drafter, new_ids_only, .timeout = 20)
{
    struct drafter *d = begin("while read -r line most ids; do echo $ids; done");
    uint32_t ids[] = {5, 6, 7, 8, 9}, out[8];
    size_t a = 0, b = 0;
    cr_assert_eq(drafter_propose(d, 0, ids, 2, &a, 8, 10, out), 2);
    cr_expect(out[0] == 5 && out[1] == 6);
    cr_assert_eq(drafter_propose(d, 1, ids, 1, &b, 8, 10, out), 1);
    cr_expect(out[0] == 5);
    cr_assert_eq(drafter_propose(d, 0, ids, 5, &a, 8, 10, out), 3);
    cr_expect(out[0] == 7 && out[1] == 8 && out[2] == 9);
    cr_assert_eq(drafter_propose(d, 1, ids, 5, &b, 3, 10, out), 3, "and no more than was asked for");
    cr_expect(a == 5 && b == 5 && drafter_counts(d).asked == 4 && drafter_counts(d).answered == 4);
    drafter_stop(d);
}

/* What is left of an answer is used as long as the ids agree with it. */
Test(decode_drafter, the_rest_of_an_answer, .timeout = 20)
{
    struct drafter *d = begin("while read -r request; do echo 10 11 12 13; done");
    uint32_t ids[] = {1, 10, 11, 99, 0}, out[8];
    size_t told = 0;
    cr_assert_eq(drafter_propose(d, 0, ids, 1, &told, 2, 10, out), 2);
    cr_assert_eq(drafter_propose(d, 0, ids, 3, &told, 8, 10, out), 2);
    cr_expect(out[0] == 12 && out[1] == 13 && drafter_counts(d).asked == 1 && told == 1);
    cr_assert_eq(drafter_propose(d, 0, ids, 4, &told, 8, -1, out), 0, "the model said 99 in place of 12");
    cr_assert_eq(drafter_propose(d, 0, ids, 4, &told, 8, 10, out), 4);
    cr_expect(out[0] == 10 && drafter_counts(d).asked == 2 && told == 4);
    drafter_stop(d);
}

/* Nobody waits for it, and it is used all the same. */
Test(decode_drafter, late_answer, .timeout = 20)
{
    struct drafter *d = begin("read -r request; sleep 0.1; echo 10 11 12; cat >/dev/null");
    uint32_t ids[] = {1, 10, 11}, out[8];
    size_t told = 0, n;
    cr_expect_eq(drafter_propose(d, 0, ids, 1, &told, 8, 0, out), 0);
    cr_expect_eq(drafter_propose(d, 1, ids, 1, &(size_t){0}, 8, 10, out), 0, "it owes the other line an answer");
    while (!(n = drafter_propose(d, 0, ids, 3, &told, 8, -1, out)))
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    cr_expect(n == 1 && out[0] == 12 && drafter_counts(d).late == 1);
    drafter_stop(d);
}

/* More than a pipe holds, to a program that does not read: kept, and forgotten with it. */
Test(decode_drafter, nobody_reads, .timeout = 20)
{
    enum { MANY = 1 << 20 };
    size_t before = open_files(), told = 0;
    struct drafter *d = begin("exec sleep 100");
    uint32_t *ids = calloc(MANY, sizeof *ids), out[8];
    cr_expect_eq(drafter_propose(d, 0, ids, MANY, &told, 8, 0.01, out), 0);
    cr_expect_eq(drafter_propose(d, 0, ids, MANY, &told, 8, 0.01, out), 0);
    size_t kept = d->request.n;
    for (int i = 0; i < 100; i++) {
        size_t of = 0;
        drafter_propose(d, 1, ids, 1, &of, 8, 0, out);
        drafter_line_end(d, 1, of);
    }
    cr_expect_eq(d->request.n, kept, "lines that it was not told of have no end to be told");
    cr_expect(drafter_alive(d) && drafter_counts(d).asked == 1);
    drafter_stop(d);
    cr_expect_eq(open_files(), before);
    cr_expect(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    free(ids);
}

/* A slow reader gets every byte. */
Test(decode_drafter, slow_reader, .timeout = 20)
{
    enum { MANY = 1 << 16 };
    struct drafter *d = begin("sleep 0.1; while read -r line most ids; do set -- $ids; echo $#; done");
    uint32_t *ids = calloc(MANY, sizeof *ids), out[8];
    size_t told = 0;
    cr_assert_eq(drafter_propose(d, 0, ids, 999, &told, 8, 10, out), 1);
    cr_expect_eq(out[0], 999);
    d->reader.vocab = MANY + 1;
    cr_assert_eq(drafter_propose(d, 0, ids, MANY, &told, 8, 10, out), 1);
    cr_expect_eq(out[0], MANY - 999);
    drafter_stop(d);
    free(ids);
}

/* It ends while a request is on its way, so that the pipe breaks. */
Test(decode_drafter, gone_in_the_middle, .timeout = 20)
{
    enum { MANY = 1 << 18 };
    size_t before = open_files(), told = 0;
    struct drafter *d = begin("sleep 0.05");
    uint32_t *ids = calloc(MANY, sizeof *ids), out[8];
    cr_expect_eq(drafter_propose(d, 0, ids, MANY, &told, 8, 10, out), 0);
    cr_expect(!drafter_alive(d));
    cr_expect_eq(drafter_propose(d, 0, ids, MANY, &told, 8, 10, out), 0);
    drafter_line_end(d, 0, told);
    cr_expect_eq(open_files(), before);
    drafter_stop(d);
    free(ids);
}

/* The end of a line is told, without ids and with none wanted. */
Test(decode_drafter, line_end, .timeout = 20)
{
    char path[] = "/tmp/drafter.XXXXXX", command[128], got[64] = "";
    close(mkstemp(path));
    snprintf(command, sizeof command, "while read -r r; do echo \"$r\" >>%s; case $r in *\" 0\") exit;; *) echo 1;; esac; done", path);
    struct drafter *d = begin(command);
    uint32_t ids[] = {3, 4}, out[8];
    size_t told = 0;
    cr_expect_eq(drafter_propose(d, 7, ids, 2, &told, 4, 10, out), 1);
    drafter_line_end(d, 8, 0);
    drafter_line_end(d, 7, told);
    drafter_stop(d);
    FILE *f = fopen(path, "r");
    got[fread(got, 1, sizeof got - 1, f)] = 0;
    fclose(f);
    unlink(path);
    cr_expect_str_eq(got, "7 4 3 4\n7 0\n");
}
