/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the tests and closes with their counts. */
#include <criterion/criterion.h>

#include <stdarg.h>
#include <sys/wait.h>

int cr_failures;
static struct cr_test *first;

void cr_add(struct cr_test *t)
{
    t->next = first;
    first = t;
}

void cr_failed(const char *file, int line, const char *what, const char *fmt, ...)
{
    va_list ap;
    cr_failures++;
    printf("    %s:%d: %s:", file, line, what);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
}

static void run(const struct cr_test *t)
{
    alarm(t->timeout ? (unsigned)t->timeout : 120);
    if (t->init)
        t->init();
    t->body();
    if (t->fini)
        t->fini();
    exit(cr_failures > 0); /* and 66 from the sanitizer, if it saw a race */
}

static bool wanted(const struct cr_test *t, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strncmp(t->suite, argv[i], strlen(argv[i])))
            return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0, status;
    for (const struct cr_test *t = first; t; t = t->next) {
        if (!wanted(t, argc, argv))
            continue;
        fflush(stdout);
        pid_t child = fork();
        if (!child)
            run(t);
        if (child < 0 || waitpid(child, &status, 0) != child)
            status = 1;
        *(!status ? &passed : WIFEXITED(status) && WEXITSTATUS(status) == 77 ? &skipped : &failed) += 1;
        if (status && !(WIFEXITED(status) && WEXITSTATUS(status) == 77))
            printf("FAIL %s::%s: wait status %d\n", t->suite, t->name, status);
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed > 0;
}
