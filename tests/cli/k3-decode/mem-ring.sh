# SPDX-License-Identifier: Apache-2.0
# One answer whatever the ring, the tiles, the reads in flight and the tiles that stay.
# Would catch a tile used before it is whole or after its buffer went on, a pinned tile read twice into one place or
# counted as read while it is not, and a cursor that loses its place between passes.
. "${0%/*}/mem-common"

walk() {
    local trunk=$2 s
    local -a stream=(--trunk-gb 0 --cache-gb 0)
    for s in 2 3 4 5 6 7 8; do same "${stream[@]}" --ring $s; done
    for s in 4Ki 64Ki 100000 1Mi 16Mi; do same "${stream[@]}" --tile $s; done
    for s in 1 2 3 16; do same "${stream[@]}" --io-depth $s; done
    same "${stream[@]}" --ring 2 --tile 4Ki --io-depth 16
    same "${stream[@]}" --ring 2 --tile 4Ki --io-depth 1
    same "${stream[@]}" --ring 8 --tile 64Ki --io-depth 1 --threads 2
    same "${stream[@]}" --ring 64 --tile 4Ki --io-depth 3
    # none, one tile, half, all but one byte, all
    for s in 0 70000 $((trunk / 2)) $((trunk - 1)) $((2 * trunk)); do
        same --trunk-gb ${s}B --cache-gb 0 --tile 64Ki
        same --trunk-gb ${s}B --cache-gb 0 --tile 4Ki --ring 2 --io-depth 7
    done
}
both walk --gen 4
