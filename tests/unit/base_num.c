/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers: one whole number in range, or an error that names the option and the text. */
#include "k3_base.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* atoi would take every one of these for a number. */
static const char *const no_number[] = {"",   " ",  "abc", "1x",  "x1",   " 1", "1 ",  "1\n", "+1",  "-1",
                                        "-0", "--", "1.0", "1e3", "0x10", "1,", "1_0", "١",   "1\t", "18446744073709551616"};

Test(base_num, what_is_no_whole_number)
{
    for (size_t i = 0; i < sizeof no_number / sizeof *no_number; i++) {
        uint64_t v = 77;
        k3_err err = {0};
        cr_expect_eq(k3_num_u64(no_number[i], "--gen", 0, UINT64_MAX, &v, &err), K3_EUSAGE, "taken: \"%s\"", no_number[i]);
        cr_expect_eq(v, 77, "the result was touched");
        cr_expect(strstr(err.text, "--gen") && strstr(err.text, no_number[i]), "%s", err.text);
    }
}

Test(base_num, whole_numbers_and_their_borders)
{
    uint64_t v;
    cr_expect(!k3_num_u64("0", "n", 0, 0, &v, NULL) && v == 0);
    cr_expect(!k3_num_u64("007", "n", 0, 7, &v, NULL) && v == 7);
    cr_expect(!k3_num_u64("18446744073709551615", "n", 0, UINT64_MAX, &v, NULL) && v == UINT64_MAX);
    cr_expect(!k3_num_u64("3", "n", 3, 5, &v, NULL) && !k3_num_u64("5", "n", 3, 5, &v, NULL));
    cr_expect(k3_num_u64("2", "n", 3, 5, &v, NULL) && k3_num_u64("6", "n", 3, 5, &v, NULL));
    cr_expect(k3_num_u64("99999999999999999999999999", "n", 0, UINT64_MAX, &v, NULL));
}

Test(base_num, reals)
{
    static const char *const bad[] = {"", " 1", "1 ", "+1", "nan", "inf", "-inf", "1e999", "0x1p3", "1.2.3", "1e", ".", "1f", "--1", "1,5"};
    double v = 77;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(k3_num_double(bad[i], "--tol", -1e300, 1e300, &v, NULL), K3_EUSAGE, "taken: \"%s\"", bad[i]);
        cr_expect_eq(v, 77);
    }
    cr_expect(!k3_num_double("1e-5", "n", 0, 1, &v, NULL) && v == 1e-5);
    cr_expect(!k3_num_double("-.5", "n", -1, 1, &v, NULL) && v == -.5);
    cr_expect(!k3_num_double("1", "n", 0, 1, &v, NULL) && k3_num_double("1.0000001", "n", 0, 1, &v, NULL));
}

Test(base_num, sizes)
{
    static const struct {
        const char *text;
        uint64_t bare, bytes;
    } good[] = {
        {"0", 1, 0}, {"256M", 1, 256000000}, {"8G", 1, UINT64_C(8000000000)}, {"1.5Gi", 1, UINT64_C(1610612736)},
        {"64Ki", 1, 65536}, {"64KiB", 1, 65536}, {"64k", 1, 64000}, {"64kB", 1, 64000}, {"1T", 1, UINT64_C(1000000000000)},
        {"2Ti", 1, UINT64_C(2199023255552)}, {"4096", 1, 4096}, {"4096B", 1000000000, 4096},
        {"16", 1000000000, UINT64_C(16000000000)}, {"0.5", 1000000000, 500000000}, {"2.25", 1000000000, UINT64_C(2250000000)},
        {"16G", 1000000000, UINT64_C(16000000000)}, {"0.001M", 1, 1000}, {"0.000000001G", 1, 1},
        {"18446744073709551615", 1, UINT64_MAX},
    };
    static const char *const bad[] = {"", "G", "-1G", "+1G", " 1G", "1 G", "1G ", "1.", ".5G", "1.G", "1..5G", "1Q", "1Gx", "1Gib",
                                      "1GiBB", "1e3", "0x10", "abc", "1,5G", "18446744073709551616", "18446744073709552K",
                                      "99999999T", "1.123456789012345678901G", "1i", "1iB"};
    uint64_t v;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_expect_eq(k3_num_size(good[i].text, "--memory", good[i].bare, &v, NULL), 0, "refused: %s", good[i].text);
        cr_expect_eq(v, good[i].bytes, "%s is %" PRIu64, good[i].text, v);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        k3_err err = {0};
        v = 77;
        cr_expect_eq(k3_num_size(bad[i], "--memory", 1, &v, &err), K3_EUSAGE, "taken: \"%s\" as %" PRIu64, bad[i], v);
        cr_expect_eq(v, 77);
        cr_expect(strstr(err.text, "--memory") && strstr(err.text, bad[i]), "%s", err.text);
    }
}

Test(base_num, bytes_for_people)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } row[] = {{0, "0 B"}, {999, "999 B"}, {1000, "1.00 kB"}, {999994, "999.99 kB"}, {999995, "1.00 MB"},
               {25829572608, "25.83 GB"}, {1560936091448, "1.56 TB"}, {UINT64_MAX, "18.45 EB"}};
    char buf[24];
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        cr_expect_str_eq(k3_fmt_bytes(buf, row[i].bytes), row[i].text);
}

Test(base_num, times_before_1970_have_one_sign)
{
    char buf[24];
    cr_expect_str_eq(k3_fmt_time(buf, 981173106500000000), "981173106.500000000");
    cr_expect_str_eq(k3_fmt_time(buf, 0), "0.000000000");
    cr_expect_str_eq(k3_fmt_time(buf, -500000000), "-0.500000000");
    cr_expect_str_eq(k3_fmt_time(buf, -1500000001), "-1.500000001");
    cr_expect_str_eq(k3_fmt_time(buf, INT64_MIN), "-9223372036.854775808");
}

Test(base_num, products_and_sums_notice_overflow)
{
    uint64_t v;
    cr_expect(k3_mul_u64(UINT32_MAX, UINT32_MAX, &v) && v == UINT64_C(0xfffffffe00000001));
    cr_expect(!k3_mul_u64(UINT64_C(1) << 32, UINT64_C(1) << 32, &v) && !k3_mul_u64(UINT64_MAX, 2, &v));
    cr_expect(k3_mul_u64(UINT64_MAX, 0, &v) && v == 0);
    cr_expect(k3_add_u64(UINT64_MAX - 1, 1, &v) && v == UINT64_MAX && !k3_add_u64(UINT64_MAX, 1, &v));
}
