# SPDX-License-Identifier: Apache-2.0
# One answer from shards and from packed trunks of any tile size, streaming, half in memory and all of it.
# Would catch tiles of the file taken for those of another cut, and a head found at the wrong place with --layers.
. "${0%/*}/mem-common"

walk() {
    local trunk=$2 tile s
    for tile in 4Ki 64Ki 16Mi; do
        k3-pack -q "$1" -o t.$tile --tile $tile || echo "cannot pack with tiles of $tile"
        for s in 0 $((trunk / 2)) $((2 * trunk)); do same --trunk t.$tile --trunk-gb ${s}B --cache-gb 0; done
        same --trunk t.$tile --memory 21M --ring 2
        same --trunk t.$tile --direct off --io-depth 1 --chunk 3
    done
    mv t.64Ki "$1/k3.trunk"
    same
    same --trunk none
    # fewer layers than the file has: the head is still its last tiles
    k3-decode -q -m "$1" --layers 5 --trunk none --logits some.npy <prompts >some
    k3-decode -q -m "$1" --layers 5 --logits got.npy <prompts >got
    cmp some got && cmp some.npy got.npy
}
both walk --gen 4
