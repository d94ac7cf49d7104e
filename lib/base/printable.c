/* SPDX-License-Identifier: Apache-2.0 */
/* Text from elsewhere, made fit for one line of a terminal. */
#include "k3_base.h"

#include <string.h>

/* The code point of the well-formed UTF-8 sequence at s and its bytes in *n, or -1 and *n = 1. A NUL ends s. */
static int32_t code_point(const unsigned char *s, unsigned *n)
{
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned size = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    *n = 1;
    if (size <= 1)
        return size ? s[0] : -1;
    int32_t c = s[0] & (0x7F >> size);
    for (unsigned i = 1; i < size; i++) {
        if ((s[i] & 0xC0) != 0x80)
            return -1;
        c = c << 6 | (s[i] & 0x3F);
    }
    if (c < least[size] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
        return -1;
    *n = size;
    return c;
}

/* Controls, and what a terminal shows as nothing or obeys: separators of lines, marks and overrides of direction,
 * joiners, tags. */
static bool is_invisible(int32_t c)
{
    static const int32_t ranges[][2] = {
        {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},   {0x180E, 0x180E},   {0x200B, 0x200F},
        {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
    };
    for (unsigned i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return (c & 0xFFFE) == 0xFFFE; /* no characters */
}

/* The text that stands for an invisible character, or for a byte that is no UTF-8 (c < 0). */
static void name_of(char name[12], int32_t c, unsigned char byte)
{
    if (c == '\n' || c == '\t')
        snprintf(name, 12, "\\%c", c == '\n' ? 'n' : 't');
    else if (c == 0xFEFF)
        snprintf(name, 12, "<BOM>");
    else if (c < 0x80)
        snprintf(name, 12, "\\x%02x", byte);
    else
        snprintf(name, 12, c > 0xFFFF ? "\\U%08x" : "\\u%04x", (unsigned)c);
}

size_t k3_printable(char *out, size_t cap, const char *text)
{
    size_t n = 0;
    unsigned step;
    for (const unsigned char *p = (const unsigned char *)text; *p; p += step) {
        char name[12];
        const int32_t c = code_point(p, &step);
        const bool plain = c >= 0 && !is_invisible(c);
        if (!plain)
            name_of(name, c, *p);
        const size_t size = plain ? step : strlen(name);
        if (n + size >= cap)
            break;
        memcpy(out + n, plain ? (const char *)p : name, size);
        n += size;
    }
    out[n] = 0;
    return n;
}

const char *k3_byte_order_mark(const void *data, size_t size)
{
    if (size >= 3 && !memcmp(data, "\xEF\xBB\xBF", 3))
        return "begins with a byte order mark (BOM, EF BB BF); save it as UTF-8 without one";
    if (size >= 2 && (!memcmp(data, "\xFF\xFE", 2) || !memcmp(data, "\xFE\xFF", 2)))
        return "begins with the byte order mark (BOM) of UTF-16; save it as UTF-8";
    return NULL;
}
