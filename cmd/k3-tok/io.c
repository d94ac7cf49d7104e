/* SPDX-License-Identifier: Apache-2.0 */
/* Standard input by single reads, so that output never waits for a full buffer. */
#include "tok.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int tok_read(void *buf, size_t size, size_t *got, k3_err *err)
{
    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf, size);
        if (n < 0 && errno == EINTR)
            continue;
        *got = n > 0 ? (size_t)n : 0;
        return n < 0 ? k3_fail_errno(err, "standard input", "cannot read") : 0;
    }
}

int tok_write(const void *data, size_t size, k3_err *err)
{
    if (!size || fwrite(data, 1, size, stdout) == size)
        return 0;
    return k3_fail_write(err, "standard output");
}

int tok_flush(k3_err *err)
{
    return fflush(stdout) ? k3_fail_write(err, "standard output") : 0;
}

/* Bytes of the well-formed UTF-8 character at s, or 0. */
static size_t character(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    if (!n || n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80)
            return 0;
    const unsigned second = n > 2 ? s[1] : 0;
    const bool overlong = (s[0] == 0xE0 && second < 0xA0) || (s[0] == 0xF0 && second < 0x90);
    const bool outside = (s[0] == 0xED && second > 0x9F) || (s[0] == 0xF4 && second > 0x8F);
    return overlong || outside ? 0 : n;
}

/* What stands for a byte at the start of which is no whole character (n = 0), or that is not written as it is. */
static void escape_of(char escape[8], unsigned char c, size_t n, enum tok_escapes how)
{
    static const char names[] = "btn?fr"; /* of 8 to 13 */
    snprintf(escape, 8, "\\%c", c); /* quote and backslash */
    if (c >= 8 && c <= 13 && c != 11)
        escape[1] = names[c - 8];
    else if (!n)
        snprintf(escape, 8, how == TOK_JSON ? "\xEF\xBF\xBD" : "\\x%02x", c);
    else if (c != '"' && c != '\\')
        snprintf(escape, 8, "\\u%04x", c);
}

static bool is_plain(unsigned char c, enum tok_escapes how)
{
    if (how == TOK_LINE)
        return c != '\\' && c != '\n' && c != '\r' && c != '\t';
    return c >= 32 && c != 127 && c != '"' && c != '\\';
}

int tok_write_escaped(const char *s, size_t size, enum tok_escapes how, k3_err *err)
{
    size_t from = 0;
    int status = 0;
    for (size_t i = 0; i < size && !status;) {
        const unsigned char c = (unsigned char)s[i];
        const size_t n = how == TOK_LINE ? 1 : character((const unsigned char *)s + i, size - i);
        char escape[8];
        if (n > 1 || (n == 1 && is_plain(c, how))) {
            i += n;
            continue;
        }
        escape_of(escape, c, n, how);
        status = tok_write(s + from, i - from, err);
        status = status ? status : tok_write(escape, strlen(escape), err);
        from = ++i;
    }
    return status || from == size ? status : tok_write(s + from, size - from, err);
}

int tok_write_quoted(const char *s, size_t size, k3_err *err)
{
    int status = tok_write("\"", 1, err);
    status = status ? status : tok_write_escaped(s, size, TOK_BYTES, err);
    return status ? status : tok_write("\"", 1, err);
}
