/* SPDX-License-Identifier: Apache-2.0 */
/* The scores behind the policy lfu. */
#ifndef K3_CACHE_LFU_H
#define K3_CACHE_LFU_H

#include "residents.h"

typedef struct lfu lfu;

/* NULL without memory. The residents have one list a layer. */
lfu *k3_lfu_new(const struct residents *r);
void k3_lfu_free(lfu *f);
void k3_lfu_clear(lfu *f, const struct residents *r);
/* k3_policy_batch for this policy. */
int k3_lfu_batch(lfu *f, struct residents *r, int layer, const uint16_t *experts, int n, int32_t *slot_of, uint8_t *hit);

#endif
