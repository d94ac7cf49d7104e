/* SPDX-License-Identifier: Apache-2.0 */
/* criterion.h - as much of Criterion as the unit tests with threads use, for
 * ThreadSanitizer, under which Criterion itself does not start. Each test runs
 * in a child of its own; `unit SUITE...` runs some of them. */
#ifndef TSAN_CRITERION_H
#define TSAN_CRITERION_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cr_test {
    const char *suite, *name;
    void (*body)(void), (*init)(void), (*fini)(void);
    int timeout;
    struct cr_test *next;
};

extern int cr_failures;
void cr_add(struct cr_test *t);
void cr_failed(const char *file, int line, const char *what, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#define Test(s, n, ...)                                                                                              \
    static void s##_##n##_body(void);                                                                                \
    static struct cr_test s##_##n##_test = {.suite = #s, .name = #n, .body = s##_##n##_body, __VA_ARGS__};           \
    __attribute__((constructor)) static void s##_##n##_add(void)                                                     \
    {                                                                                                                \
        cr_add(&s##_##n##_test);                                                                                     \
    }                                                                                                                \
    static void s##_##n##_body(void)

#define cr_expect(x, ...) ((x) ? (void)0 : cr_failed(__FILE__, __LINE__, #x, " " __VA_ARGS__))
#define cr_assert(x, ...) ((x) ? (void)0 : (cr_failed(__FILE__, __LINE__, #x, " " __VA_ARGS__), _exit(1)))
#define cr_expect_not(x, ...) cr_expect(!(x), "" __VA_ARGS__)
#define cr_expect_eq(a, b, ...) cr_expect((a) == (b), "" __VA_ARGS__)
#define cr_expect_neq(a, b, ...) cr_expect((a) != (b), "" __VA_ARGS__)
#define cr_expect_lt(a, b, ...) cr_expect((a) < (b), "" __VA_ARGS__)
#define cr_expect_leq(a, b, ...) cr_expect((a) <= (b), "" __VA_ARGS__)
#define cr_expect_geq(a, b, ...) cr_expect((a) >= (b), "" __VA_ARGS__)
#define cr_expect_null(a, ...) cr_expect(!(a), "" __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...) cr_expect(!strcmp(a, b), "" __VA_ARGS__)
#define cr_expect_float_eq(a, b, e, ...) cr_expect(fabs((double)(a) - (double)(b)) <= (double)(e), "" __VA_ARGS__)
#define cr_assert_eq(a, b, ...) cr_assert((a) == (b), "" __VA_ARGS__)
#define cr_assert_neq(a, b, ...) cr_assert((a) != (b), "" __VA_ARGS__)
#define cr_assert_lt(a, b, ...) cr_assert((a) < (b), "" __VA_ARGS__)
#define cr_assert_leq(a, b, ...) cr_assert((a) <= (b), "" __VA_ARGS__)
#define cr_assert_gt(a, b, ...) cr_assert((a) > (b), "" __VA_ARGS__)
#define cr_assert_geq(a, b, ...) cr_assert((a) >= (b), "" __VA_ARGS__)
#define cr_assert_null(a, ...) cr_assert(!(a), "" __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...) cr_assert(!strcmp(a, b), "" __VA_ARGS__)
#define cr_assert_arr_eq(a, b, n, ...) cr_assert(!memcmp(a, b, n), "" __VA_ARGS__)
#define cr_skip_test(...) _exit(77)

#endif
