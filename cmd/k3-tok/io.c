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

int tok_write_quoted(const char *s, size_t size, k3_err *err)
{
    static const char names[] = "btn?fr"; /* of 8 to 13 */
    int status = tok_write("\"", 1, err);
    for (size_t i = 0; i < size && !status;) {
        const unsigned char c = (unsigned char)s[i];
        const size_t n = character((const unsigned char *)s + i, size - i);
        char escape[8] = {'\\', (char)c};
        if (n > 1 || (n == 1 && c >= 32 && c != 127 && c != '"' && c != '\\')) {
            status = tok_write(s + i, n, err);
            i += n;
            continue;
        }
        if (c >= 8 && c <= 13 && c != 11)
            escape[1] = names[c - 8];
        else if (!n)
            snprintf(escape, sizeof escape, "\\x%02x", c);
        else if (c != '"' && c != '\\')
            snprintf(escape, sizeof escape, "\\u%04x", c);
        status = tok_write(escape, strlen(escape), err);
        i++;
    }
    return status ? status : tok_write("\"", 1, err);
}
