# SPDX-License-Identifier: Apache-2.0
# Every byte is accounted for: what the report counts follows from passes, tiles and misses, and is what the kernel counted.
# Would catch a tile or expert read twice, pinned tiles read again, prefetches that are counted as hits or not at all,
# and bytes of one class booked under another.
. "${0%/*}/mem-common"

sanitizer=$(ldd "$(command -v k3-decode)" | grep -E "lib[at]san")

# is NAME VALUE EXPECTED
is() { [ "$2" = "$3" ] || echo "$what: $1 is $2, not $3"; }

# run OPTION ...: report.json of a run over ./prompts, and into `kernel` the bytes that it read beyond one of an empty line
run() {
    local before
    what=$*
    echo >blank
    iocount rchar count k3-decode -q -m m --mem-limit 1G --report report.json "$@" <blank >/dev/null
    before=$(cat count)
    iocount rchar count k3-decode -q -m m --mem-limit 1G --report report.json "$@" <prompts >ids || echo "exit $? from $*"
    kernel=$(($(cat count) - before - $(stat -c %s prompts) + 1))
    numbers report.json
    is "hits + misses" $((expert_hits + expert_misses)) "$expert_requests"
    is "expert bytes" "$expert_bytes" $((expert_misses * expert))
    all=$((trunk_bytes + head_bytes + expert_bytes + embedding_bytes + unused_bytes))
}

# near LOW HIGH: what the kernel counted is all that was reported, and between LOW and HIGH more; the system's own
# files, such as /proc/self/status, differ by some digits from run to run
near() {
    local more=$((kernel - all)) slack=64
    [ -z "$sanitizer" ] || slack=512 # which reads files of its own
    ((more >= $1 - slack && more <= $2 + slack)) || echo "$what: the kernel counted $more more than the report, not $1 to $2"
}

walk() {
    local layers=$1 moe=$2 kda=$3 topk=$4 experts=$5 row=$6 tail=$7 fed=$8 trunk head i
    k3-decode -m m --plan --json --disk-rate 5G --trunk-gb 0 --cache-gb 0 >plan.json
    trunk=$(jsonq plan.json bytes_per_token trunk) head=$(jsonq plan.json bytes_per_token head)
    expert=$(($(jsonq plan.json bytes_per_token experts_without_cache) / moe / topk))

    # everything streams, one token a pass: prompt and 4 of 5 ids go in, 5 logit rows come out
    run --gen 5 --trunk-gb 0 --cache-gb 0 --chunk 1 --direct off
    is passes "$passes" "$fed"
    is trunk "$trunk_bytes" $((fed * trunk))
    is head "$head_bytes" $((5 * head))
    is requests "$expert_requests" $((fed * moe * topk))
    is hits "$expert_hits" 0
    is embedding "$embedding_bytes" $((fed * row))
    is unused "$unused_bytes" 0
    is "state traffic" $((scratch_read_bytes + scratch_written_bytes)) 0
    # of A_log the whole tensor is read, for its tail must be zero
    near $((fed * kda * tail)) $((fed * kda * tail))

    # direct reads are rounded outwards to at most 4096 at both ends: a read for each of at most 80 tiles, vectors and experts a layer
    run --gen 5 --trunk-gb 0 --cache-gb 0 --chunk 1
    is trunk "$trunk_bytes" $((fed * trunk))
    near 0 $((fed * (layers + 1) * 80 * 8192))

    # the prompt in one pass reads the trunk once, and each distinct expert of a layer once
    run --gen 5 --trunk-gb 0 --cache-gb 0 --chunk 64 --direct off
    is passes "$passes" 5
    is trunk "$trunk_bytes" $((5 * trunk))
    is head "$head_bytes" $((5 * head))
    is embedding "$embedding_bytes" $((fed * row))
    near $((5 * kda * tail)) $((5 * kda * tail))
    [ "$expert_requests" -lt $((fed * moe * topk)) ] || echo "$what: no expert is shared by two tokens of the prompt"

    # a prompt that is only read needs no head, except for its logits
    run --gen 0 --trunk-gb 0 --cache-gb 0 --chunk 2
    is head "$head_bytes" 0
    run --gen 0 --trunk-gb 0 --cache-gb 0 --chunk 2 --logits rows.npy
    is head "$head_bytes" $((passes * head))

    # everything stays: read once, then never again
    run --gen 5 --trunk-gb 1 --cache-gb 1 --direct off
    is trunk "$trunk_bytes" "$trunk"
    is head "$head_bytes" "$head"
    is pinned "$pinned_bytes" $((trunk + head))
    is evictions "$expert_evictions" 0
    near $((kda * tail)) $((kda * tail))
    [ "$expert_misses" -le $((moe * experts)) ] || echo "$what: an expert came twice"

    # some tiles stay, of trunk and head alike: those once, the others in each pass
    for i in 4 2; do
        run --gen 5 --chunk 64 --trunk-gb $(((trunk + head) / i))B --cache-gb 0 --tile 16Ki --direct off
        is "trunk and head" $((trunk_bytes + head_bytes)) $((5 * (trunk + head - pinned_bytes) + pinned_bytes))
        ((pinned_bytes > 0 && pinned_bytes <= (trunk + head) / i)) || echo "$what: $pinned_bytes are pinned"
        near $((kda * tail)) $((5 * kda * tail))
    done

    # a cache: every policy's misses are read and nothing else (least recently used forgets all in a cycle of layers
    # that is longer than it); with one slot all others pass through
    for i in lru layers lfu; do
        run --gen 9 --trunk-gb 1 --cache-gb $((moe * experts / 2 * slot))B --cache-policy $i --chunk 1 --direct off
        is requests "$expert_requests" $(((fed + 4) * moe * topk))
        [ "$expert_hits" -gt 0 ] || [ "$i" = lru ] || echo "$what: never a hit"
        near $((kda * tail)) $((kda * tail))
        run --gen 5 --trunk-gb 1 --cache-gb ${slot}B --cache-policy $i --chunk 1 --direct off
        [ "$expert_evictions" -le "$expert_misses" ] || echo "$what: more evictions than misses"
        near $((kda * tail)) $((kda * tail))
    done

    # state in scratch: each KDA layer comes back for every pass but its first and goes out likewise
    run --gen 5 --trunk-gb 0 --cache-gb 0 --chunk 64 --spill on --direct off
    is trunk "$trunk_bytes" $((5 * trunk))
    i=$((scratch_read_bytes / (4 * kda) / 4096 * 4096))
    [ $i -gt 0 ] || echo "$what: no state came from scratch"
    # two layers may have come for a pass that does not follow
    [ "$scratch_read_bytes" -le $((4 * kda * i + 2 * i)) ] || echo "$what: $scratch_read_bytes of scratch, $i a layer"
    all=$((all + 4 * kda * i))
    near $((5 * kda * tail)) $((5 * kda * tail + 2 * i))

    # a stop id ends a run whose next pass is on its way: what came for nothing is reported
    ahead=0
    for i in "" "--ring 40 --io-depth 16 --slow-reads 500" "--ring 3 --io-depth 1"; do
        # shellcheck disable=SC2086
        run --gen 20 --stop-id "$(cut -d' ' -f3 ids)" --trunk-gb 0 --cache-gb 0 --chunk 64 --direct off --tile 64Ki $i
        ahead=$((ahead + unused_bytes)) # a busy machine may leave the readers no time in one of them
        near $((3 * kda * tail)) $((4 * kda * tail))
    done
    [ $ahead -gt 0 ] || echo "$what: nothing was read ahead"
}

model tiny m
echo '77 121 700 1015' >prompts
slot=16384
walk 13 12 9 4 32 256 112 8
rm -r m
model odd m
echo '1 76 9 332' >prompts
slot=32768
walk 7 6 4 3 5 208 84 8
