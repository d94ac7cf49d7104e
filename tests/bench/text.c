/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizer speed on one core: the time to open a vocabulary, and MB/s of
 * encoding each file given, whole, from memory to ids in memory.
 * usage: text MODEL FILE ... */
#define _GNU_SOURCE
#include "k3_text.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double cpu_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the fastest of several runs over the text. */
static double fastest(k3_encoder *e, const char *text, size_t size, k3_ids *ids)
{
    double best = 1e9, begin = cpu_now();
    for (int i = 0; i < 50 && (i < 3 || cpu_now() - begin < 2); i++) {
        const double t = cpu_now();
        ids->n = 0;
        if (k3_encode(e, text, size, ids, NULL))
            exit(3);
        best = cpu_now() - t < best ? cpu_now() - t : best;
    }
    return best;
}

int main(int argc, char **argv)
{
    k3_err err = {0};
    k3_vocab *v;
    k3_prog_start("bench-text");
    if (argc < 2)
        return 2;
    double t = cpu_now();
    if (k3_vocab_open(&v, argv[1], 0, &err))
        return k3_report_error(&err);
    printf("open for decoding %.1f ms\n", 1e3 * (cpu_now() - t));
    k3_vocab_close(v);
    t = cpu_now();
    if (k3_vocab_open(&v, argv[1], K3_VOCAB_ENCODE, &err))
        return k3_report_error(&err);
    printf("open for encoding %.1f ms\n", 1e3 * (cpu_now() - t));
    for (int i = 2; i < argc; i++) {
        char *text;
        size_t size;
        k3_ids ids = {0};
        k3_encoder *e;
        if (k3_read_file(argv[i], UINT32_MAX, &text, &size, &err) || k3_encoder_new(&e, v, false, &err))
            return k3_report_error(&err);
        t = cpu_now();
        if (k3_encode(e, text, size, &ids, &err))
            return k3_report_error(&err);
        const double first = cpu_now() - t, best = fastest(e, text, size, &ids);
        printf("%-12s %6.1f MB/s (first %6.1f), %.2f bytes an id\n", basename(argv[i]), 1e-6 * (double)size / best,
               1e-6 * (double)size / first, (double)size / (double)(ids.n ? ids.n : 1));
        k3_encoder_free(e);
        k3_ids_free(&ids);
        free(text);
    }
    k3_vocab_close(v);
    return k3_prog_end(0);
}
