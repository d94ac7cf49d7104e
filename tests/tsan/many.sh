# SPDX-License-Identifier: Apache-2.0
# Batches, drafts, state files, traces and a failing run under ThreadSanitizer.
# Would catch a sequence that joins or leaves while readers look at the plan, and a reader that outlives its buffers.
. "$MEM_COMMON"
model tiny m
export K3_MODEL=m
for i in 1 2 3 4 5 6 7; do seq -s' ' $((i * 13)) 7 $((i * 13 + 7 * (i % 4))); done >lines
k3-decode -q --gen 12 --stop-id none --threads 1 --batch 1 <lines >want
runs=0
alike() {
    k3-decode -q --gen 12 --stop-id none "$@" <lines >got 2>err || { echo "exit $? from $*"; cat err; return; }
    cmp want got && runs=$((runs + 1))
}
for memory in 16M 24M 2G; do
    for o in "--batch 2 --threads 2" "--batch 5 --threads 3 --draft 3" "--batch 7 --draft 8" "--batch 1 --draft 6 --io-depth 2"; do
        # shellcheck disable=SC2086
        alike --memory $memory $o
    done
done
alike --trunk-gb 0 --cache-gb 160K --slow-reads 200 --batch 4
alike --trunk-gb 2M --cache-gb 1M --trace t.k3t --report r.json --logprobs p.tsv --cache-policy lfu
echo "$runs runs, one answer"
# a longer line than planned for: everything is opened anew
(echo 5; seq -s' ' 1 90; echo 6) | k3-decode -q --gen 2 --trunk-gb 2M --cache-gb 1M --threads 3 >got && wc -l <got
head -n 1 lines | k3-decode -q --gen 3 --spill on --save-state s >a
echo | k3-decode -q --gen 3 --load-state s --trunk-gb 0 --cache-gb 0 --threads 2 >b
k3-decode -q --score <lines | k3-decode -q --score >c 2>/dev/null
k3-decode -q --perplexity --memory 16M <lines >c
# an expert whose checksum is wrong ends the run while other reads are on their way
k3-index verify -q -m m --write-sums >/dev/null
shard=$(k3-index show -q -m m --json language_model.model.layers.3.block_sparse_moe.experts.0.w1.weight_packed >t.json; jsonq t.json shard)
touch -r "m/$shard" stamp
head -c 400000 /dev/zero | dd of="m/$shard" bs=1 seek=200000 conv=notrunc status=none
touch -r stamp "m/$shard"
k3-decode -q --gen 3 --trunk-gb 2M --cache-gb 1M --io-depth 8 --threads 3 <lines >got 2>err
status=$?
[ $status -eq 1 ] || [ $status -eq 4 ] || cat err
# a signal in the middle
cp "$TINY/model/$shard" m && rm m/k3.index m/k3.sums
coproc D { exec env --default-signal=INT k3-decode -q --gen 1000 --stop-id none --slow-reads 3000 --threads 3; } 2>err
echo 5 >&"${D[1]}"
read -rd ' ' _ <&"${D[0]}"
kill -s INT "$D_PID"
wait "$D_PID"
echo "exit $?"
cat err
