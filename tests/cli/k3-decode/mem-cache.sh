# SPDX-License-Identifier: Apache-2.0
# One answer whatever the expert slots and the policy, decoding and in chunks.
# Would catch a slot given away while its expert is in use, an expert published before it is whole, sums in order
# of arrival, and an engine that needs a slot for each expert of a step.
. "${0%/*}/mem-common"

walk() {
    local room=$3 all=$4 topk=$5 policy s
    for policy in lru layers lfu; do
        for s in 0 1 $((topk - 1)) "$topk" $((topk + 1)) $((all / 2)) "$all"; do
            same --cache-policy $policy --trunk-gb 0 --cache-gb $((s * room))B --chunk 1
        done
        same --cache-policy $policy --trunk-gb 0 --cache-gb $((topk * room))B --io-depth 3
        same --cache-policy $policy --trunk-gb 1 --cache-gb 0
        same --cache-policy $policy --trunk-gb 1 --cache-gb 1 --threads 2
    done
}
both walk --gen 5
