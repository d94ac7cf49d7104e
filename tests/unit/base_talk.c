/* SPDX-License-Identifier: Apache-2.0 */
/* Messages are one line that says where, and cannot be broken by what they quote. */
#define _GNU_SOURCE
#include "k3_base.h"

#include <criterion/criterion.h>
#include <criterion/redirect.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

Test(base_talk, the_place_is_part_of_the_message)
{
    k3_err err = {0};
    cr_expect_eq(k3_fail_at(&err, K3_EDATA, "f.safetensors", "q", 812, "ends %d past the data", 3), K3_EDATA);
    cr_expect_str_eq(err.text, "f.safetensors: tensor \"q\": ends 3 past the data (at byte 812)");
    cr_expect(err.status == K3_EDATA && err.offset == 812 && !strcmp(err.file, "f.safetensors") && !strcmp(err.tensor, "q"));
    k3_fail_at(&err, K3_EDATA, NULL, NULL, -1, "plain");
    cr_expect_str_eq(err.text, "plain", "an older message shines through");
    errno = ENOENT;
    cr_expect_eq(k3_fail_errno(&err, "f", "cannot open"), K3_ESYS);
    cr_expect_str_eq(err.text, "f: cannot open: No such file or directory");
    errno = EPIPE;
    cr_expect_eq(k3_fail_write(&err, "standard output"), K3_EPIPE);
    cr_expect_eq(k3_fail(NULL, K3_EUSAGE, "nobody listens"), K3_EUSAGE);
}

/* Names come from files: they may be of any length. */
Test(base_talk, long_names_are_cut_not_overrun)
{
    char *name = malloc(100001);
    memset(name, 'x', 100000);
    name[100000] = 0;
    k3_err err;
    memset(&err, 0xff, sizeof err);
    k3_fail_at(&err, K3_EDATA, name, name, 1, "%s", name);
    cr_expect(memchr(err.text, 0, sizeof err.text) && memchr(err.file, 0, sizeof err.file) && memchr(err.tensor, 0, sizeof err.tensor));
    errno = EIO;
    k3_fail_errno(&err, name, "%s", name);
    cr_expect(memchr(err.text, 0, sizeof err.text) != NULL);
    free(name);
}

/* Runs a program body with its own stdout and stderr; returns the exit status, stderr in text. */
static int program(int (*body)(void), const char *out, char *text, size_t cap)
{
    int talk[2], how;
    cr_assert_eq(pipe(talk), 0);
    fflush(NULL);
    pid_t pid = fork();
    if (!pid) {
        dup2(talk[1], 2);
        close(talk[0]);
        close(talk[1]);
        close(1);
        if (out && open(out, O_WRONLY) != 1)
            _exit(99);
        _exit(body());
    }
    close(talk[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < cap && (got = read(talk[0], text + n, cap - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    close(talk[0]);
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    return WIFEXITED(how) ? WEXITSTATUS(how) : 1000 + WTERMSIG(how);
}

static int prints(void)
{
    k3_prog_start("k3-x");
    puts("data");
    return k3_prog_end(0);
}

static int prints_and_fails(void)
{
    k3_prog_start("k3-x");
    puts("data");
    k3_err err = {0};
    k3_fail(&err, K3_EDATA, "line one\nline two\t\x1b[31m\x7f \xc3\xa9");
    return k3_prog_end(k3_report_error(&err));
}

static int opens_a_file(void)
{
    k3_prog_start("k3-x");
    int fd = open("/dev/null", O_WRONLY);
    return fd > 2 ? k3_prog_end(0) : 98;
}

static int says_nothing(void)
{
    k3_prog_start("k3-x");
    k3_verbosity = -1;
    k3_note("not this");
    k3_err err = {0};
    k3_fail(&err, K3_EUSAGE, "but this");
    return k3_prog_end(k3_report_error(&err));
}

static int reader_is_gone(void)
{
    int p[2];
    if (pipe(p))
        return 97;
    close(p[0]);
    dup2(p[1], 1);
    k3_prog_start("k3-x");
    puts("data");
    return k3_prog_end(0);
}

/* The stream is in error, and no call since has set errno. */
static int failed_before(void)
{
    k3_prog_start("k3-x");
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("data");
    return k3_prog_end(0);
}

static int progress_quotes(void)
{
    k3_prog_start("k3-x");
    k3_progress_mode = K3_PROGRESS_ON;
    k3_progress(true, "reads a\x1b[31m\xEF\nb");
    return k3_prog_end(0);
}

Test(base_talk, how_programs_end)
{
    char text[1024];
    cr_expect_eq(program(prints, "/dev/null", text, sizeof text), 0);
    cr_expect_str_eq(text, "");
    cr_expect_eq(program(prints, "/dev/full", text, sizeof text), K3_ESYS);
    cr_expect_str_eq(text, "k3-x: standard output: cannot write: No space left on device\n");
    cr_expect_eq(program(prints, NULL, text, sizeof text), K3_ESYS, "a closed stdout swallowed the data");
    cr_expect(!strncmp(text, "k3-x: standard output: cannot write: ", 37), "%s", text);
    cr_expect_eq(program(prints_and_fails, "/dev/full", text, sizeof text), K3_EDATA, "the first error counts");
    cr_expect_str_eq(text, "k3-x: line one\\nline two\\t\\x1b[31m\\x7f \xc3\xa9\n");
    cr_expect_eq(program(opens_a_file, NULL, text, sizeof text), 0, "a file took the number of a closed stdout");
    cr_expect_eq(program(says_nothing, "/dev/null", text, sizeof text), K3_EUSAGE);
    cr_expect_str_eq(text, "k3-x: but this\n");
    cr_expect_eq(program(failed_before, "/dev/full", text, sizeof text), K3_ESYS);
    cr_expect_str_eq(text, "k3-x: standard output: cannot write: a write before failed\n");
    cr_expect_eq(program(progress_quotes, "/dev/null", text, sizeof text), 0);
    cr_expect_str_eq(text, "reads a\\x1b[31m\\xef\\nb\n");
    cr_expect_eq(program(reader_is_gone, "/dev/null", text, sizeof text), 0);
    cr_expect_str_eq(text, "");
}

/* What a message quotes can neither break the line nor speak to the terminal, and is valid UTF-8. */
Test(base_talk, quoted_text_is_printable)
{
    static const char *const pairs[][2] = {
        {"plain \xC3\xA9 \xE4\xB8\x96 \xF0\x9F\x98\x80", "plain \xC3\xA9 \xE4\xB8\x96 \xF0\x9F\x98\x80"},
        {"a\nb\tc\rd\x1b[31m\x7f\x01", "a\\nb\\tc\\x0dd\\x1b[31m\\x7f\\x01"},
        {"\xEF", "\\xef"},                                       /* a lone byte of a mark */
        {"\xEF\xBB", "\\xef\\xbb"},
        {"\xEF\xBB\xBFx", "<BOM>x"},
        {"\x9b" "31m", "\\x9b31m"},                             /* C1 as a raw byte */
        {"\xC2\x9b" "31m \xC2\x80\xC2\x9f", "\\u009b31m \\u0080\\u009f"}, /* C1 as characters */
        {"\xE2\x80\xAE\xD8\x9C\xE2\x81\xA6\xE2\x80\x8F", "\\u202e\\u061c\\u2066\\u200f"},
        {"\xE2\x80\xA8\xE2\x80\x8B\xF3\xA0\x81\x81", "\\u2028\\u200b\\U000e0041"},
        {"\xED\xA0\x80", "\\xed\\xa0\\x80"},                   /* half of a surrogate pair */
        {"\xC0\x80\xF5\x80", "\\xc0\\x80\\xf5\\x80"},
        {"\xF0\x9F\x98", "\\xf0\\x9f\\x98"},                   /* cut short */
    };
    char out[200];
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        cr_expect_eq(k3_printable(out, sizeof out, pairs[i][0]), strlen(pairs[i][1]));
        cr_expect_str_eq(out, pairs[i][1]);
    }
    cr_expect_eq(k3_printable(out, 6, "abc\xC3\xA9\xC3\xA9"), 5);
    cr_expect_str_eq(out, "abc\xC3\xA9", "cut inside a character");
}

static char any_name[600];

static int quotes_any_name(void)
{
    k3_prog_start("k3-x");
    k3_err err = {0};
    k3_fail_at(&err, K3_EDATA, any_name, any_name, 3, "\"%.60s\" is nothing", any_name);
    return k3_prog_end(k3_report_error(&err));
}

/* Names of any bytes, cut wherever a field ends: a message is one line of valid UTF-8 without controls. */
Test(base_talk, any_bytes_give_one_printable_line)
{
    uint64_t r = 88172645463325252u;
    char text[20000];
    for (int round = 0; round < 40; round++) {
        const size_t n = round < 20 ? (size_t)round * 7 + 1 : sizeof any_name - 1;
        for (size_t i = 0; i < n; i++) {
            r ^= r << 13, r ^= r >> 7, r ^= r << 17;
            any_name[i] = (char)(r >> 40) ? (char)(r >> 40) : 'x';
        }
        any_name[n] = 0;
        cr_expect_eq(program(quotes_any_name, "/dev/null", text, sizeof text), K3_EDATA);
        const size_t size = strlen(text);
        cr_assert(size && text[size - 1] == '\n');
        text[size - 1] = 0;
        char again[sizeof text];
        k3_printable(again, sizeof again, text);
        cr_expect_str_eq(again, text, "the line still holds what must be escaped");
    }
}
