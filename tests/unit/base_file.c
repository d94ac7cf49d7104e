/* SPDX-License-Identifier: Apache-2.0 */
/* Files that appear whole: at commit under their name, or not at all. */
#define _GNU_SOURCE
#include "k3_base.h"
#include "temp_folder.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[FOLDER_MAX];

static void enter(void)
{
    temp_folder(dir);
}

/* Everything in the folder, removed on the way: "a b". */
static char *listing(void)
{
    static char text[512];
    struct dirent **entry;
    char path[512];
    text[0] = 0;
    int n = scandir(dir, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (entry[i]->d_name[0] != '.') {
            strcat(strcat(text, text[0] ? " " : ""), entry[i]->d_name);
            snprintf(path, sizeof path, "%s/%s", dir, entry[i]->d_name);
            unlink(path);
        }
        free(entry[i]);
    }
    free(entry);
    return text;
}

static void leave(void)
{
    listing();
    rmdir(dir);
}

TestSuite(base_file, .init = enter, .fini = leave);

static const char *at(const char *name)
{
    static char path[2][512];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static k3_file *create(const char *path)
{
    k3_file *f;
    k3_err err = {0};
    cr_assert_eq(k3_file_create(&f, path, &err), 0, "%s", err.text);
    return f;
}

static char *content(const char *path)
{
    char *data = NULL;
    size_t size;
    k3_read_file(path, 1 << 20, &data, &size, NULL);
    return data;
}

Test(base_file, commit_shows_the_file_and_only_then)
{
    k3_err err = {0};
    k3_file *f = create(at("x"));
    cr_expect(!k3_file_is_direct(f));
    fputs("whole\n", k3_file_stream(f));
    fflush(k3_file_stream(f));
    cr_expect_neq(access(at("x"), F_OK), 0, "it is there before commit");
    cr_expect_eq(k3_file_commit(&f, &err), 0, "%s", err.text);
    cr_expect_null(f);
    char *c = content(at("x"));
    cr_expect_str_eq(c, "whole\n");
    free(c);
    cr_expect_str_eq(listing(), "x");
}

/* Until commit the old file is intact; abort leaves it. */
Test(base_file, an_older_file_stays_until_commit)
{
    k3_err err = {0};
    for (int commit = 0; commit < 2; commit++) {
        k3_file *f = create(at("x"));
        fputs("old", k3_file_stream(f));
        cr_assert_eq(k3_file_commit(&f, &err), 0);
        f = create(at("x"));
        fputs("new and longer", k3_file_stream(f));
        fflush(k3_file_stream(f));
        char *c = content(at("x"));
        cr_expect_str_eq(c, "old");
        free(c);
        if (commit)
            k3_file_commit(&f, &err);
        else
            k3_file_abort(&f);
        cr_expect_null(f);
        c = content(at("x"));
        cr_expect_str_eq(c, commit ? "new and longer" : "old");
        free(c);
        cr_expect_str_eq(listing(), "x", "a temporary is left");
    }
    k3_file *none = NULL;
    k3_file_abort(&none);
}

/* The header is rewritten at the end, and the body read back. */
Test(base_file, the_stream_seeks_and_reads)
{
    k3_err err = {0};
    char back[5] = "";
    k3_file *f = create(at("x"));
    FILE *s = k3_file_stream(f);
    fputs("0000 body", s);
    rewind(s);
    fputs("head", s);
    fseek(s, 5, SEEK_SET);
    cr_expect_eq(fread(back, 1, 4, s), 4);
    cr_expect_str_eq(back, "body");
    cr_expect_eq(k3_file_commit(&f, &err), 0);
    char *c = content(at("x"));
    cr_expect_str_eq(c, "head body");
    free(c);
}

/* Opening a FIFO waits for its writer, before its kind can be seen. */
Test(base_file, a_fifo_is_refused_without_waiting, .timeout = 60)
{
    char *data;
    size_t size;
    k3_err err = {0};
    cr_assert_eq(mkfifo(at("fifo"), 0666), 0);
    cr_expect_eq(k3_read_file(at("fifo"), 100, &data, &size, &err), K3_ESYS);
    cr_expect_null(data);
    cr_expect(strstr(err.text, "fifo: not a regular file") != NULL, "%s", err.text);
}

/* A temporary beside "" could be made, so that the missing name shows only when all the work is done. */
Test(base_file, an_empty_name_is_refused_at_once)
{
    k3_file *f;
    k3_err err = {0};
    cr_assert_eq(k3_file_create(&f, "", &err), K3_ESYS);
    cr_expect_null(f);
    cr_expect_str_eq(err.text, "\"\": cannot create: a file name is empty");
}

Test(base_file, places_that_cannot_be_written)
{
    static const char *const bad[] = {"none/x", "file/x", "sub"};
    close(open(at("file"), O_CREAT | O_WRONLY, 0666));
    mkdir(at("sub"), 0777);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        k3_file *f;
        k3_err err = {0};
        cr_expect_eq(k3_file_create(&f, at(bad[i]), &err), K3_ESYS, "%s", bad[i]);
        cr_expect_null(f);
        cr_expect(strstr(err.text, bad[i]) != NULL, "%s", err.text);
    }
    rmdir(at("sub"));
    cr_expect_str_eq(listing(), "file");
}

/* /dev/full, a pipe: written in place, never renamed over. */
Test(base_file, devices_are_written_directly)
{
    k3_err err = {0};
    k3_file *f = create("/dev/full");
    cr_expect(k3_file_is_direct(f));
    fputs("too much", k3_file_stream(f));
    cr_expect_eq(k3_file_commit(&f, &err), K3_ESYS);
    cr_expect(strstr(err.text, "/dev/full") && strstr(err.text, "No space left"), "%s", err.text);
    struct stat st;
    cr_expect(!stat("/dev/full", &st) && S_ISCHR(st.st_mode), "the device is gone");

    cr_assert_eq(mkfifo(at("pipe"), 0666), 0);
    int in = open(at("pipe"), O_RDONLY | O_NONBLOCK);
    char got[8] = "";
    f = create(at("pipe"));
    cr_expect(k3_file_is_direct(f));
    fputs("through", k3_file_stream(f));
    cr_expect_eq(k3_file_commit(&f, &err), 0, "%s", err.text);
    cr_expect_eq(read(in, got, 7), 7);
    cr_expect_str_eq(got, "through");
    close(in);
}

/* A write that failed early must not be forgotten at commit, and the reason is told. */
Test(base_file, a_full_disk_leaves_nothing)
{
    k3_err err = {0};
    struct rlimit small = {1000, 1000};
    signal(SIGXFSZ, SIG_IGN);
    k3_file *f = create(at("x"));
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    for (int i = 0; i < 10000; i++)
        fputs("0123456789", k3_file_stream(f));
    fflush(k3_file_stream(f)); /* nothing is left to fail at commit */
    errno = 0;
    cr_expect_eq(k3_file_commit(&f, &err), K3_ESYS);
    cr_expect(strstr(err.text, "/x: cannot write") && !strstr(err.text, "Success"), "%s", err.text);
    cr_expect_str_eq(listing(), "");
}

/* A process killed while it writes: by a signal it can catch it tidies up, by
 * SIGKILL the temporary stays, but nothing has the file's name. */
Test(base_file, a_killed_writer_leaves_no_finished_file)
{
    static const int sig[] = {SIGINT, SIGTERM, SIGHUP, SIGKILL};
    for (size_t i = 0; i < sizeof sig / sizeof *sig; i++) {
        int ready[2];
        cr_assert_eq(pipe(ready), 0);
        pid_t pid = fork();
        if (!pid) {
            signal(sig[i], SIG_DFL);
            k3_file *f;
            if (k3_file_create(&f, at("x"), NULL))
                _exit(1);
            fputs("half", k3_file_stream(f));
            fflush(k3_file_stream(f));
            if (write(ready[1], "!", 1) == 1)
                pause();
            _exit(1);
        }
        char c;
        int how;
        cr_assert_eq(read(ready[0], &c, 1), 1);
        kill(pid, sig[i]);
        cr_assert_eq(waitpid(pid, &how, 0), pid);
        cr_expect(WIFSIGNALED(how) && WTERMSIG(how) == sig[i], "signal %d: it did not die of it", sig[i]);
        cr_expect_neq(access(at("x"), F_OK), 0, "signal %d", sig[i]);
        char *left = listing();
        cr_expect(sig[i] == SIGKILL ? strstr(left, ".tmp") != NULL : !left[0], "signal %d left: %s", sig[i], left);
        close(ready[0]);
        close(ready[1]);
    }
}

/* ---- reading ------------------------------------------------------------------------ */

Test(base_file, read_file_limits)
{
    char *data;
    size_t size = 9;
    k3_err err = {0};
    k3_file *f = create(at("x"));
    fwrite("a\0b", 1, 3, k3_file_stream(f));
    k3_file_commit(&f, &err);
    cr_expect_eq(k3_read_file(at("x"), 3, &data, &size, &err), 0, "%s", err.text);
    cr_expect(size == 3 && !memcmp(data, "a\0b", 4), "the NUL after the data is missing");
    free(data);
    cr_expect_eq(k3_read_file(at("x"), 2, &data, &size, &err), K3_EDATA);
    cr_expect(data == NULL && strstr(err.text, "3 bytes, at most 2"), "%s", err.text);
    cr_expect_eq(k3_read_file(at("none"), 2, &data, &size, &err), K3_ESYS);
    cr_expect_eq(k3_read_file(dir, 1000000, &data, &size, &err), K3_ESYS);
    close(open(at("empty"), O_CREAT | O_WRONLY, 0666));
    cr_expect(!k3_read_file(at("empty"), 0, &data, &size, &err) && size == 0 && data[0] == 0);
    free(data);
}

/* Past 2 GiB and 4 GiB, and over the end: offset and both sizes are named. */
Test(base_file, pread_far_and_over_the_end)
{
    const off_t end = ((off_t)5 << 30) + 7;
    char buf[16];
    k3_err err = {0};
    int fd = open(at("x"), O_RDWR | O_CREAT, 0666);
    cr_assert(!ftruncate(fd, end) && pwrite(fd, "mark", 4, end - 4) == 4);
    cr_expect_eq(k3_pread_full(fd, "big", buf, 4, (uint64_t)end - 4, &err), 0, "%s", err.text);
    cr_expect(!memcmp(buf, "mark", 4));
    cr_expect_eq(k3_pread_full(fd, "big", buf, 8, (uint64_t)end - 4, &err), K3_EDATA);
    cr_expect(strstr(err.text, "big") && strstr(err.text, "4 of 8 bytes") && strstr(err.text, "at byte 5368709123"), "%s", err.text);
    cr_expect_eq(err.offset, end - 4);
    cr_expect_eq(k3_pread_full(fd, "big", buf, 0, (uint64_t)end + 4, &err), 0);
    close(fd);
    cr_expect_eq(k3_pread_full(fd, "big", buf, 4, 0, &err), K3_ESYS);
}
