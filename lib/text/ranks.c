/* SPDX-License-Identifier: Apache-2.0 */
/* tiktoken.model: one `base64 rank` a line, ranks rising by one from 0. */
#define _GNU_SOURCE
#include "text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#define RANKS_FILE "tiktoken.model"
#define RANKS_MAX_BYTES (256u << 20)
#define TOKEN_MAX 65535 /* bytes */

int k3_text_path(char **path, const char *dir, const char *name, k3_err *err)
{
    const size_t n = strlen(dir);
    if (asprintf(path, "%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name) >= 0)
        return 0;
    *path = NULL;
    return k3_fail(err, K3_ESYS, "out of memory");
}

int k3_text_read(const char *dir, const char *name, char **path, char **data, size_t *size, k3_err *err)
{
    static const char lfs[] = "version https://git-lfs.github.com/spec/";
    struct stat st;
    *data = NULL;
    int status = k3_text_path(path, dir, name, err);
    if (status)
        return status;
    if (stat(dir, &st))
        return k3_fail_errno(err, dir, "cannot open the model folder");
    if (!S_ISDIR(st.st_mode))
        return k3_fail(err, K3_ESYS, "%s: not a folder", dir);
    if (stat(*path, &st) && errno == ENOENT)
        return k3_fail_at(err, K3_ESYS, dir, NULL, -1, "no %s in this folder; the tokenizer needs it beside the shards", name);
    if ((status = k3_read_file(*path, RANKS_MAX_BYTES, data, size, err)))
        return status;
    if (*size >= sizeof lfs - 1 && !memcmp(*data, lfs, sizeof lfs - 1))
        return k3_fail_at(err, K3_EDATA, *path, NULL, -1, "is a git-lfs pointer, not the file itself; fetch it with `git lfs pull`");
    if (*size && (*data)[strspn(*data, " \t\r\n")] == '<')
        return k3_fail_at(err, K3_EDATA, *path, NULL, -1, "is a web page, not the file itself; download it again");
    return 0;
}

/* Value of a base64 digit, or 64. */
static const uint8_t *base64_digits(uint8_t table[256])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    memset(table, 64, 256);
    for (unsigned i = 0; i < 64; i++)
        table[(uint8_t)digits[i]] = (uint8_t)i;
    return table;
}

/* Decodes n characters with padding into out; the bytes, or -1 if they are no strict base64. */
static int64_t base64(const uint8_t *digit, const uint8_t *s, size_t n, uint8_t *out)
{
    uint8_t *o = out;
    if (!n || n % 4)
        return -1;
    const unsigned pad = (s[n - 1] == '=') + (s[n - 1] == '=' && s[n - 2] == '=');
    for (; n > (pad ? 4 : 0); s += 4, n -= 4) {
        const uint32_t a = digit[s[0]], b = digit[s[1]], c = digit[s[2]], d = digit[s[3]];
        if ((a | b | c | d) & 64)
            return -1;
        const uint32_t v = a << 18 | b << 12 | c << 6 | d;
        *o++ = (uint8_t)(v >> 16);
        *o++ = (uint8_t)(v >> 8);
        *o++ = (uint8_t)v;
    }
    if (!pad)
        return o - out;
    const uint32_t a = digit[s[0]], b = digit[s[1]], c = pad == 1 ? digit[s[2]] : 0;
    if ((a | b | c) & 64 || (pad == 1 ? c & 3 : b & 15))
        return -1;
    *o++ = (uint8_t)(a << 2 | b >> 4);
    if (pad == 1)
        *o++ = (uint8_t)(b << 4 | c >> 2);
    return o - out;
}

/* The rest of a line, as it may be shown in a message. */
static int shown(const uint8_t *s, const uint8_t *end)
{
    return (int)(end - s < 40 ? end - s : 40);
}

/* One line [s, end) that must hold rank `rank`; its token goes to out. */
static int read_line(const uint8_t *digit, const char *path, uint32_t rank, const uint8_t *s, const uint8_t *end,
                     uint8_t *out, int64_t *size, k3_err *err)
{
    const unsigned line = rank + 1;
    const uint8_t *blank = memchr(s, ' ', (size_t)(end - s));
    if (!blank)
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "line %u: \"%.*s\" is not `base64 rank`", line, shown(s, end), s);
    *size = base64(digit, s, (size_t)(blank - s), out);
    if (*size < 0)
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "line %u: \"%.*s\" is not base64", line, shown(s, blank), s);
    if (*size > TOKEN_MAX)
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "line %u: a token of %" PRId64 " bytes, at most %d expected", line,
                          *size, TOKEN_MAX);
    uint64_t v = 0;
    const uint8_t *d = blank + 1;
    for (; d < end && *d >= '0' && *d <= '9' && v <= UINT32_MAX; d++)
        v = v * 10 + (*d - '0');
    if (d < end || d == blank + 1)
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "line %u: \"%.*s\" is not a rank", line, shown(blank + 1, end),
                          blank + 1);
    if (v != rank)
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "line %u: rank %" PRIu64 " where %u must follow", line, v, rank);
    return 0;
}

/* Every single byte must be a token, or some text could not be encoded. */
static int find_bytes(k3_vocab *v, const char *path, k3_err *err)
{
    memset(v->byte_id, 0xFF, sizeof v->byte_id);
    for (uint32_t i = v->ranks; i-- > 0;)
        if (v->offset[i + 1] - v->offset[i] == 1)
            v->byte_id[(uint8_t)v->bytes[v->offset[i]]] = i;
    for (unsigned b = 0; b < 256; b++)
        if (v->byte_id[b] == NO_ID)
            return k3_fail_at(err, K3_EDATA, path, NULL, -1, "%u lines, none of them the single byte 0x%02X", v->ranks, b);
    return 0;
}

int k3_vocab_parse_ranks(k3_vocab *v, const char *path, const char *data, size_t size, k3_err *err)
{
    const uint8_t *s = (const uint8_t *)data, *const end = s + size;
    uint8_t table[256];
    const uint8_t *digit = base64_digits(table);
    size_t cap = 0, used = 0;
    if (k3_byte_order_mark(data, size))
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "%s", k3_byte_order_mark(data, size));
    if (!(v->bytes = malloc(size + SLACK)))
        return k3_fail(err, K3_ESYS, "%s: out of memory", path);
    for (; s < end; v->ranks++) {
        const uint8_t *eol = memchr(s, '\n', (size_t)(end - s));
        int64_t n = 0;
        if (!eol)
            eol = end;
        if (v->ranks + 1 >= cap) {
            cap = cap ? 2 * cap : 1 << 12;
            uint32_t *p = realloc(v->offset, (cap + K3_SPECIALS + 1) * sizeof *p);
            if (!p)
                return k3_fail(err, K3_ESYS, "%s: out of memory", path);
            v->offset = p;
        }
        int status = read_line(digit, path, v->ranks, s, eol, (uint8_t *)v->bytes + used, &n, err);
        if (status)
            return status;
        v->offset[v->ranks] = (uint32_t)used;
        used += (size_t)n;
        v->longest = n > v->longest ? (uint32_t)n : v->longest;
        s = eol < end ? eol + 1 : end;
    }
    if (!v->ranks)
        return k3_fail_at(err, K3_EDATA, path, NULL, -1, "is empty");
    v->offset[v->ranks] = (uint32_t)used;
    return find_bytes(v, path, err);
}

int k3_vocab_read_ranks(k3_vocab *v, const char *dir, k3_err *err)
{
    char *path = NULL, *data = NULL;
    size_t size;
    int status = k3_text_read(dir, RANKS_FILE, &path, &data, &size, err);
    if (!status)
        status = k3_vocab_parse_ranks(v, path, data, size, err);
    free(path);
    free(data);
    return status;
}
