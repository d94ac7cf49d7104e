/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes, with and without special names, come back from encode and decode;
 * in parts they give the same ids. $K3_MODEL names the vocabulary. */
#include "fuzz.h"
#include "k3_text.h"

static k3_vocab *vocab;
static k3_encoder *plain, *special;

static void open_once(void)
{
    k3_err err = {0};
    const char *model = getenv("K3_MODEL");
    if (vocab)
        return;
    if (!model || k3_vocab_open(&vocab, model, K3_VOCAB_ENCODE, &err) || k3_encoder_new(&plain, vocab, false, &err) ||
        k3_encoder_new(&special, vocab, true, &err))
        exit(3);
}

static void check(k3_encoder *e, const uint8_t *data, size_t size)
{
    k3_decoder d = {.vocab = vocab};
    k3_ids whole = {0}, parts = {0};
    k3_bytes back = {0};
    size_t bad;
    if (k3_encode(e, data, size, &whole, NULL))
        exit(3);
    for (size_t at = 0, n = 1; at < size; at += n, n = n % 61 + 7)
        if (k3_encoder_feed(e, data + at, n < size - at ? n : size - at, &parts, NULL))
            exit(3);
    if (k3_encoder_end(e, &parts, NULL) || k3_decode(&d, whole.id, whole.n, &back, &bad, NULL) || k3_decode_end(&d, &back, NULL))
        exit(3);
    if (whole.n != parts.n || (whole.n && memcmp(whole.id, parts.id, whole.n * sizeof *whole.id)))
        abort();
    if (back.n != size || (size && memcmp(back.data, data, size)))
        abort();
    k3_ids_free(&whole);
    k3_ids_free(&parts);
    k3_bytes_free(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_once();
    check(plain, data, size);
    check(special, data, size);
    return 0;
}
