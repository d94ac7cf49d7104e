/* SPDX-License-Identifier: Apache-2.0 */
/* Any ids are taken apart, and no byte of their text is lost: text and markup together are what decode writes. Each
 * byte of the input is an id, or from 240 on a control id. $K3_MODEL names the vocabulary. */
#include "fuzz.h"
#include "k3_text.h"

static k3_vocab *vocab;
static uint32_t control[6];

static int keep_text(void *arg, k3_channel channel, const char *s, size_t size, k3_err *err)
{
    (void)channel;
    return k3_bytes_add(arg, s, size, err);
}

static int keep_markup(void *arg, const char *s, size_t size, k3_err *err)
{
    return k3_bytes_add(arg, s, size, err);
}

static void open_vocab(void)
{
    static const char *const names[] = {"<|open|>", "<|close|>", "<|sep|>", "<|end_of_msg|>", "<|media_pad|>", "[EOS]"};
    const char *model = getenv("K3_MODEL");
    if (!model || k3_vocab_open(&vocab, model, 0, NULL))
        exit(3);
    for (int i = 0; i < 6; i++)
        control[i] = (uint32_t)k3_vocab_special(vocab, names[i], strlen(names[i]));
}

static void parse(k3_parser *parser, const k3_ids *ids)
{
    for (size_t i = 0; i < ids->n; i++)
        if (k3_parser_feed(parser, ids->id[i], NULL))
            abort();
    if (k3_parser_end(parser, NULL))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const k3_parse_events on = {.text = keep_text, .markup = keep_markup};
    k3_ids ids = {0};
    k3_bytes want = {0}, seen = {0};
    k3_parser *parser;
    size_t bad;
    if (!vocab)
        open_vocab();
    k3_decoder decoder = {.vocab = vocab};
    if (k3_ids_reserve(&ids, size + 1, NULL) || k3_parser_new(&parser, vocab, !size || data[0] % 2, &on, &seen, NULL))
        exit(3);
    for (size_t i = 0; i < size; i++)
        ids.id[ids.n++] = data[i] < 240 ? data[i] : control[data[i] % 6];
    if (k3_decode(&decoder, ids.id, ids.n, &want, &bad, NULL) || k3_decode_end(&decoder, &want, NULL))
        abort();
    /* twice in one parser: the second answer must not see the first */
    for (int turn = 0; turn < 2; turn++) {
        seen.n = 0;
        parse(parser, &ids);
        if (seen.n != want.n || (want.n && memcmp(seen.data, want.data, want.n)))
            abort();
    }
    k3_parser_free(parser);
    k3_bytes_free(&want);
    k3_bytes_free(&seen);
    k3_ids_free(&ids);
    return 0;
}
