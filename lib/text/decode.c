/* SPDX-License-Identifier: Apache-2.0 */
/* Ids to bytes, holding back nothing but an incomplete UTF-8 sequence. */
#include "text.h"

#include <inttypes.h>

/* Bytes at the end of s[0..n) that later bytes could complete to one well-formed sequence, 0 to 3. */
static size_t incomplete_tail(const uint8_t *s, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        bool incomplete;
        if (s[n - k] < 0x80)
            return 0;
        if (s[n - k] < 0xC0)
            continue; /* a continuation byte: its lead is further back */
        k3_utf8_length(s + n - k, s + n, &incomplete);
        return incomplete ? k : 0;
    }
    return 0;
}

int k3_decode(k3_decoder *d, const uint32_t *ids, size_t n, k3_bytes *out, size_t *bad, k3_err *err)
{
    const k3_vocab *v = d->vocab;
    const size_t first = out->n;
    int status = k3_bytes_add(out, d->tail, d->held, err);
    if (status)
        return status;
    d->held = 0;
    for (size_t i = 0; i < n && !status; i++) {
        if (ids[i] >= k3_vocab_size(v)) {
            *bad = i;
            status = k3_fail(err, K3_EDATA, "id %" PRIu32 " is outside the vocabulary of %" PRIu32 " ids", ids[i],
                             k3_vocab_size(v));
            break;
        }
        if (d->skip_special && ids[i] >= v->ranks)
            continue;
        status = k3_bytes_add(out, v->bytes + v->offset[ids[i]], v->offset[ids[i] + 1] - v->offset[ids[i]], err);
    }
    if (out->n == first)
        return status;
    const size_t held = incomplete_tail((const uint8_t *)out->data + first, out->n - first);
    out->n -= held;
    memcpy(d->tail, out->data + out->n, held);
    d->held = (unsigned)held;
    return status;
}

int k3_decode_end(k3_decoder *d, k3_bytes *out, k3_err *err)
{
    int status = k3_bytes_add(out, d->tail, d->held, err);
    d->held = 0;
    return status;
}
