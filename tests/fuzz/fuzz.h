/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - a fuzz target is a function of bytes. Built as it is, a program of
 * its own runs it over mutations of seed files, the same ones every time; for
 * libFuzzer compile with -DK3_LIBFUZZER -fsanitize=fuzzer.
 * usage of the program: fuzz-x RUNS SEED_FILE ... */
#ifndef K3_FUZZ_H
#define K3_FUZZ_H

#include "k3_base.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef K3_LIBFUZZER

static uint32_t fuzz_random(uint64_t *state, size_t below)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 33) % (below ? below : 1));
}

/* One change to data[0..size), which has room for twice as much; the new size. */
static size_t fuzz_mutate(uint8_t *data, size_t size, uint64_t *r)
{
    static const char *const words[] = {"\n", " ", "=", "==", "\"", "{", "[", "null", "-1", "4294967296", "1e400", "\xFF", "\\u0000", "0"};
    if (!size)
        return 0;
    const size_t at = fuzz_random(r, size), n = fuzz_random(r, size - at) % 40 + 1;
    const char *const word = words[fuzz_random(r, sizeof words / sizeof *words)];
    const size_t length = strlen(word) < size - at ? strlen(word) : size - at;
    switch (fuzz_random(r, 6)) {
    case 0: /* cut short */
        return at;
    case 1: /* flip a bit */
        data[at] ^= (uint8_t)(1 << fuzz_random(r, 8));
        return size;
    case 2: /* any byte */
        data[at] = (uint8_t)fuzz_random(r, 256);
        return size;
    case 3: /* leave some out */
        memmove(data + at, data + at + n, n > size - at ? 0 : size - at - n);
        return n > size - at ? at : size - n;
    case 4: /* say some twice */
        if (n > size - at)
            return size;
        memmove(data + at + n, data + at, size - at);
        return size + n;
    default: /* write a word over it */
        memcpy(data + at, word, length);
        return size;
    }
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    uint64_t runs, r = 88172645463325252u;
    k3_prog_start("fuzz");
    if (argc < 3 || k3_num_u64(argv[1], "RUNS", 1, UINT32_MAX, &runs, &err))
        return 2;
    for (int f = 2; f < argc; f++) {
        char *seed;
        size_t size;
        if (k3_read_file(argv[f], 1 << 24, &seed, &size, &err))
            return k3_report_error(&err);
        uint8_t *data = malloc(2 * size + 4096);
        for (uint64_t i = 0; i < runs; i++) {
            size_t n = size;
            memcpy(data, seed, size);
            for (uint32_t k = fuzz_random(&r, 4); k-- > 0 && n < 2 * size;)
                n = fuzz_mutate(data, n, &r);
            uint8_t *exact = malloc(n ? n : 1); /* so that a read past the end is seen */
            memcpy(exact, data, n);
            LLVMFuzzerTestOneInput(exact, n);
            free(exact);
        }
        free(data);
        free(seed);
    }
    return 0;
}

#endif
#endif
