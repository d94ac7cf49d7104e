/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as k3.index, with the checksums made right: whatever is accepted must be safe
 * to use. $K3_MODEL names the folder of the config. */
#include "fuzz.h"
#include "store.h"

/* Checksums that match, so that what lies behind them is reached. */
static void mend(char *image, size_t size)
{
    struct image_head *h = (struct image_head *)image;
    if (size < sizeof *h)
        return;
    for (int s = 0; s < SECTIONS; s++) {
        const struct section *x = &h->section[s];
        uint64_t end = size - sizeof *h;
        if (x->offset >= sizeof *h && x->offset <= end && x->bytes < end && (x->bytes + 7) / 8 * 8 <= size - x->offset)
            h->section[s].sum = k3_section_sum(image, x);
    }
    h->sum = XXH3_64bits(h, offsetof(struct image_head, sum));
}

static volatile uint64_t touched;

static void use(const k3_index *ix)
{
    const k3_config *c = k3_index_config(ix);
    k3_entry e;
    k3_extent at[K3_PARTS];
    for (uint64_t i = 0; i < k3_index_count(ix); i++) {
        k3_index_entry(ix, i, &e);
        if (e.at.shard >= k3_index_shards(ix) || e.at.offset + e.at.bytes > k3_index_shard_size(ix, e.at.shard))
            abort();
        uint64_t n = strlen(e.name) + strlen(k3_index_shard_path(ix, e.at.shard));
        for (uint64_t r = 0; r < e.rank; r++)
            n += e.shape[r];
        touched = n;
    }
    for (uint64_t l = c->first_moe; l < c->layers; l++)
        for (uint64_t x = 0; x < c->experts; x++)
            k3_index_expert(ix, (int)l, x, at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static k3_config config;
    k3_index *ix = calloc(1, sizeof *ix);
    k3_err err;
    if (!config.layers && k3_config_load(getenv("K3_MODEL"), &config, &err))
        exit(3);
    ix->config = config;
    ix->dir = strdup("model");
    ix->image = malloc(size + 1);
    ix->image_bytes = size;
    memcpy(ix->image, data, size);
    mend(ix->image, size);
    if (!k3_index_attach(ix, "k3.index", &err))
        use(ix);
    k3_index_close(ix);
    return 0;
}
