# SPDX-License-Identifier: Apache-2.0
# Experts read before their router has chosen change no id, no hit and no failure, and every byte of them is counted:
# those that were wanted as misses, the others as read for nothing.
# Would catch a guess at another router or another input, a guess used in place of the router's choice, a slot that gets the bytes of another expert, a guess that
# stays in its buffer until none is left, and a run that fails for an expert that no id depends on.
. "${0%/*}/fault-common"

# guesses OPTION ...: the same answer and the same misses as without guesses, and the counts agree
guesses() {
    local expert known
    same --trunk-gb 1 --chunk 1 "$@" --lookahead 0 --report report.json
    numbers report.json
    known="$expert_hits $expert_misses $expert_evictions" expert=$((expert_misses ? expert_bytes / expert_misses : 0))
    [ "$guesses $guesses_early $guesses_wasted $lookahead" = "0 0 0 0" ] || echo "guesses without a lookahead: $*"
    for ahead in 1 2 100; do
        same --trunk-gb 1 --chunk 1 "$@" --lookahead $ahead --report report.json
        numbers report.json
        [ "$expert_hits $expert_misses $expert_evictions" = "$known" ] || echo "other hits, misses or evictions: $*"
        [ "$expert_bytes" = $((expert_misses * expert)) ] || echo "$expert_bytes bytes of $expert_misses experts: $*"
        [ "$unused_bytes" = $((guesses_wasted * expert)) ] || echo "$unused_bytes for nothing, $guesses_wasted wrong: $*"
        ((guesses_early <= guesses_right && guesses_right <= expert_misses && guesses_early + guesses_wasted <= guesses && lookahead <= topk)) ||
            echo "$guesses guesses, $guesses_right right, $guesses_early early, $guesses_wasted wasted, lookahead $lookahead: $*"
        right=$((right + guesses_early)) wrong=$((wrong + guesses_wasted))
    done
}

walk() {
    local room=$3 all=$4 topk=$5 cache us known
    right=0 wrong=0
    for cache in 0 1 "$topk" $((all / 2)); do
        for us in 0 200; do
            guesses --slow-reads $us --cache-gb $((cache * room))B --threads $((1 + cache % 2)) --io-depth $((1 + us / 50))
        done
    done
    guesses --cache-gb $((all / 3 * room))B --cache-policy lru
    guesses --cache-gb $((all / 3 * room))B --cache-policy lfu --tile 16Ki
    same --trunk-gb 1 --cache-gb 0 --chunk 1 --lookahead "$topk" --report report.json
    numbers report.json
    # a buffer whose read for nothing has not ended yet can take no guess, so some are not made now and then
    known=$((guesses_right * 20 / guesses * 5))
    echo "$known % of the guesses were right, or more"
    # a trunk of which half stays has its routers in memory
    same --trunk-gb 1M --tile 16Ki --cache-gb 0 --chunk 1 --lookahead "$topk" --report report.json
    numbers report.json
    [ $((guesses_right * 20 / guesses * 5)) = "$known" ] || echo "with half a trunk $guesses_right of $guesses"
    # the prompt goes in together, two lines are decoded together: nothing to guess for
    same --trunk-gb 1 --cache-gb 0 --lookahead "$topk" --batch 2 --slow-reads 200
    ((right > 0 && wrong > 0)) || echo "$right guesses were right, $wrong wrong"
}
both walk --gen 9 --batch 1

echo "== an expert that cannot be read"
rm -rf m && mv tiny m
echo 77 121 700 1015 >prompts
k3-decode -q -m m --gen 4 --threads 1 --logits want.npy <prompts >want
ended=0
for i in 0 3 7 11 14 19 23 26 30 31; do
    rule="read $(place "model.layers.5.block_sparse_moe.experts.$i.w2.weight_packed") EIO"
    fails "$rule" --trunk-gb 1 --cache-gb 0 --chunk 1 --direct off --lookahead 0 >without
    for us in 0 300; do
        fails "$rule" --trunk-gb 1 --cache-gb 0 --chunk 1 --direct off --lookahead 4 --slow-reads $us >with
        cmp without with || cat with
    done
    ended=$((ended + $(grep -c "exit 4" with)))
done
((ended > 0 && ended < 10)) || echo "$ended of 10 experts were needed"

echo "== an expert with a flipped byte that no token needs"
k3-index verify -q -m m --write-sums >verified || cat verified
k3-decode -q -m m --gen 4 --trace t.k3t --layers 7 <prompts >want
k3-trace cat t.k3t | awk '$5 == 6' | sed 's/:[0-9.]*//g' >layer6
for i in $(seq 0 31); do
    awk -v e="$i" '{for (f = 6; f <= NF; f++) if ($f == e) exit 1}' layer6 || continue
    read -r shard from _ < <(place "model.layers.6.block_sparse_moe.experts.$i.w2.weight_packed")
    byte=$(od -An -tu1 -j"${from#from=}" -N1 "m/$shard")
    touch -r "m/$shard" stamp
    printf "\\x$(printf %x $((byte ^ 16)))" | dd of="m/$shard" bs=1 seek="${from#from=}" conv=notrunc status=none
    touch -r stamp "m/$shard"
done
k3-decode -q -m m --gen 4 --trunk-gb 1 --cache-gb 0 --chunk 1 --direct off --layers 7 --lookahead 4 --slow-reads 300 \
    --report report.json <prompts >got
cmp want got
numbers report.json
((guesses_wasted > 0 && unused_bytes == guesses_wasted * 6528)) || echo "$unused_bytes bytes of $guesses_wasted experts"

echo "== no layer with experts"
for o in "--layers 1" "--layers 1 --trunk none --ring 2"; do
    # shellcheck disable=SC2086
    k3-decode -q -m m --gen 4 $o --lookahead 0 <prompts >want
    # shellcheck disable=SC2086
    k3-decode -q -m m --gen 4 $o --lookahead 4 <prompts >got && cmp want got
done

echo "== within the budget"
least=$(planned -m m --trunk-gb 1 --cache-gb 0 --threads 1 --memory 1)
for memory in $(seq "$least" 10000 $((least + 90000))); do
    n=$(planned -m m --trunk-gb 1 --cache-gb 0 --threads 1 --memory "${memory}B")
    ((n <= memory)) || echo "$n planned of $memory"
done
