/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabulary files: whatever they hold, opening either works or names a fault. The seed tells which file it is. */
#include "fuzz.h"
#include "text.h"

/* A vocabulary of single bytes, for special names to follow. */
static int bytes_only(k3_vocab *v)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char text[256 * 12];
    size_t n = 0;
    for (unsigned b = 0; b < 256; b++)
        n += (size_t)sprintf(text + n, "%c%c== %u\n", digits[b >> 2], digits[(b & 3) << 4], b);
    return k3_vocab_parse_ranks(v, "bytes", text, n, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    k3_vocab *v = calloc(1, sizeof *v);
    k3_err err = {0};
    int status;
    if (!v)
        return 0;
    if (size && data[0] == '{') {
        status = bytes_only(v);
        if (!status)
            status = k3_vocab_parse_specials(v, "config", (const char *)data, size, &err);
    } else {
        status = k3_vocab_parse_ranks(v, "ranks", (const char *)data, size, &err);
        if (!status)
            status = k3_vocab_parse_specials(v, "config", "{\"added_tokens_decoder\": {}}", 28, &err);
    }
    if (!status)
        status = k3_vocab_index(v, "folder", &err);
    if (status && !err.text[0])
        abort();
    k3_vocab_close(v);
    return 0;
}
