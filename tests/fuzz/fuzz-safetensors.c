/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the header of a shard: the parser ends with an answer, and what it accepts
 * covers the data. $K3_MODEL names the folder of the config. */
#include "fuzz.h"
#include "store.h"

/* `data` is the JSON text; behind it the file goes on for as many bytes as data[0] says, so
 * that covers can fit ('{': 123). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static k3_config config;
    struct header h;
    struct problems p = {.limit = size % 2 ? 1 : 20};
    struct shard_file f = {.fd = -1, .header = size + 8, .text = malloc(size + 9)};
    k3_err err;
    if (!config.layers && k3_config_load(getenv("K3_MODEL"), &config, &err))
        exit(3);
    memset(f.text, 0, 8);
    memcpy(f.text + 8, data, size);
    f.text[size + 8] = 0;
    f.st.st_size = (off_t)(f.header + (size ? data[0] : 0));
    if (k3_header_parse(&h, &f, "shard", &config, &p, &err))
        abort();
    uint64_t at = 0;
    for (size_t i = 0; !p.n && i < h.n; at = h.records[i++].end)
        if (h.records[i].begin != at || h.records[i].end < at)
            abort();
    if (!p.n && at != (uint64_t)f.st.st_size - f.header)
        abort();
    k3_header_free(&h);
    k3_problems_free(&p);
    free(f.text);
    return 0;
}
