/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a chat request are encoded or refused with a message. $K3_MODEL names the vocabulary. */
#include "fuzz.h"
#include "k3_text.h"

static k3_vocab *vocab;
static k3_chat *chat;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    k3_err err = {0};
    k3_ids ids = {0};
    const char *model = getenv("K3_MODEL");
    if (!vocab && (!model || k3_vocab_open(&vocab, model, K3_VOCAB_ENCODE, &err) || k3_chat_new(&chat, vocab, &err)))
        exit(3);
    if (k3_chat_encode(chat, (const char *)data, size, "request", &ids, &err) && !err.text[0])
        abort();
    k3_ids_free(&ids);
    return 0;
}
