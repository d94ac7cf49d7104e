/* SPDX-License-Identifier: Apache-2.0 */
/* Strict numbers: the whole text is one number in range, or an error. */
#include "k3_base.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool k3_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

bool k3_add_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}

/* Digits only; returns the end, or NULL on none or overflow. */
static const char *digits(const char *s, uint64_t *out)
{
    uint64_t v = 0;
    if (!isdigit((unsigned char)*s))
        return NULL;
    for (; isdigit((unsigned char)*s); s++)
        if (!k3_mul_u64(v, 10, &v) || !k3_add_u64(v, (uint64_t)(*s - '0'), &v))
            return NULL;
    *out = v;
    return s;
}

int k3_num_u64(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out, k3_err *err)
{
    uint64_t v;
    const char *end = digits(text, &v);
    if (!end || *end || v < min || v > max)
        return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64, what, text, min,
                       max);
    *out = v;
    return 0;
}

int k3_num_double(const char *text, const char *what, double min, double max, double *out, k3_err *err)
{
    char *end = NULL;
    bool plain = *text && *text != '+' && strspn(text, "0123456789.eE+-") == strlen(text);
    double v = plain ? strtod(text, &end) : 0;
    if (!plain || *end || !isfinite(v) || v < min || v > max)
        return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is not a number from %g to %g", what, text, min, max);
    *out = v;
    return 0;
}

int k3_num_size(const char *text, const char *what, uint64_t bare, uint64_t *out, k3_err *err)
{
    static const char prefix[] = "KMGT";
    uint64_t whole, frac = 0, scale = 1, unit = bare;
    const char *s = digits(text, &whole);
    if (s && *s == '.') {
        const char *start = s + 1;
        s = digits(start, &frac);
        for (const char *p = start; s && p < s; p++)
            if (!k3_mul_u64(scale, 10, &scale))
                s = NULL;
    }
    const char *p = s && *s ? strchr(prefix, toupper((unsigned char)*s)) : NULL;
    if (p) {
        int power = (int)(p - prefix) + 1;
        bool binary = s[1] == 'i';
        unit = 1;
        for (int i = 0; i < power; i++)
            unit *= binary ? 1024 : 1000;
        s += binary ? 2 : 1;
    }
    if (s && *s == 'B') {
        unit = p ? unit : 1;
        s++;
    }
    uint64_t bytes;
    if (!s || *s || !k3_mul_u64(whole, unit, &bytes) ||
        !k3_add_u64(bytes, (uint64_t)((long double)frac / (long double)scale * (long double)unit + 0.5L), &bytes))
        return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is not a size such as 800M, 8G or 1.5Gi", what, text);
    *out = bytes;
    return 0;
}

/* "4Ki" for 4096, "800M" for 800,000,000: as it could be typed. */
static const char *typed(char buf[32], uint64_t bytes)
{
    static const struct {
        uint64_t unit;
        const char *suffix;
    } units[] = {{1 << 30, "Gi"}, {1 << 20, "Mi"}, {1 << 10, "Ki"}, {1000000000, "G"}, {1000000, "M"}, {1000, "K"}, {1, ""}};
    size_t i = 0;
    while (!bytes || bytes % units[i].unit)
        if (units[i].unit == 1)
            break;
        else
            i++;
    snprintf(buf, 32, "%" PRIu64 "%s", bytes / units[i].unit, units[i].suffix);
    return buf;
}

int k3_num_size_within(const char *text, const char *what, uint64_t min, uint64_t max, uint64_t *out, k3_err *err)
{
    char low[32], high[32];
    uint64_t bytes = 0;
    int status = k3_num_size(text, what, 1, &bytes, err);
    if (status)
        return status;
    if (max == UINT64_MAX && bytes < min)
        return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is too small: at least %s byte%s", what, text, typed(low, min), min == 1 ? "" : "s");
    if (bytes < min || bytes > max)
        return k3_fail(err, K3_EUSAGE, "%s: \"%s\" is outside %s..%s", what, text, typed(low, min), typed(high, max));
    *out = bytes;
    return 0;
}

char *k3_fmt_bytes(char *buf, uint64_t bytes)
{
    static const char *const unit[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
    double v = (double)bytes;
    int i = -1;
    while (v >= 999.995 && i < 5) {
        v /= 1000;
        i++;
    }
    if (i < 0)
        snprintf(buf, 24, "%" PRIu64 " B", bytes);
    else
        snprintf(buf, 24, "%.2f %s", v, unit[i]);
    return buf;
}

char *k3_fmt_time(char *buf, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    snprintf(buf, 24, "%s%" PRIu64 ".%09" PRIu64, ns < 0 ? "-" : "", size / 1000000000, size % 1000000000);
    return buf;
}

char *k3_fingerprint_text(char *buf, k3_fingerprint f)
{
    snprintf(buf, K3_FINGERPRINT_TEXT, "%016" PRIx64 "%016" PRIx64, f.hi, f.lo);
    return buf;
}
