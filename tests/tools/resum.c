/* SPDX-License-Identifier: Apache-2.0 */
/* resum FILE - makes the checksums of a k3.index right again after bytes of it were changed (tests of forged files). */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SECTION = 88, SECTIONS = 7, ROW = 24, HEAD = SECTION + SECTIONS * ROW + 8 };

static uint64_t word(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

int main(int argc, char **argv)
{
    FILE *f = argc == 2 ? fopen(argv[1], "r+b") : NULL;
    if (!f || fseek(f, 0, SEEK_END))
        return 2;
    long size = ftell(f);
    unsigned char *b = malloc((size_t)size);
    rewind(f);
    if (!b || size < HEAD || fread(b, 1, (size_t)size, f) != (size_t)size)
        return 2;
    for (int s = 0; s < SECTIONS; s++) {
        unsigned char *row = b + SECTION + s * ROW;
        uint64_t at = word(row), bytes = (word(row + 8) + 7) / 8 * 8;
        if (at > (uint64_t)size || bytes > (uint64_t)size - at)
            return 2;
        uint64_t sum = XXH3_64bits(b + at, bytes);
        memcpy(row + 16, &sum, sizeof sum);
    }
    uint64_t sum = XXH3_64bits(b, HEAD - 8);
    memcpy(b + HEAD - 8, &sum, sizeof sum);
    rewind(f);
    int bad = fwrite(b, 1, (size_t)size, f) != (size_t)size;
    free(b);
    return fclose(f) || bad ? 2 : 0;
}
