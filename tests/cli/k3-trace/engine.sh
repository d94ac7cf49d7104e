# SPDX-License-Identifier: Apache-2.0
# the engine's own counters are the simulator's, and its residency the replay's, for every policy it offers, at
# 0, 1, topk (4), one token's set (48) -1, +0, +1, half and all (384) slots: two prompts in chunks, drafts and decode
command -v k3-decode >/dev/null || { echo "no k3-decode"; exit 77; }
slot=16384 # bytes that the engine gives an expert of the small model
# the expert counters of a report: requests hits
counters() { sed -n 's/.*"expert_requests": \([0-9]*\).*/\1/p; s/.*"expert_hits": \([0-9]*\).*/\1/p' r.json | tr '\n' ' '; }
for policy in lru layers lfu; do
    for n in 0 1 4 47 48 49 192 384; do
        printf '67 471 480 67 471 480 67 471\n100 7 7 7 7\n' |
            k3-decode -m "$TINY/model" -q --gen 20 --chunk 4 --draft 3 --cache-policy $policy --trunk-gb 0.001 \
                --cache-gb $((n * slot))B --trace t.k3t --report r.json >/dev/null || exit
        engine=$(counters)
        sim=$(k3-trace sim -p $policy -s $n --tsv t.k3t | awk -F '\t' 'NR == 2 {print $4, $5 " "}')
        replay=$(k3-trace verify t.k3t) || exit
        [ "$engine" = "$sim" ] || echo "$policy, $n slots: engine $engine, simulator $sim"
        case $replay in "$policy, $n slots:"*) ;; *) echo "$policy, $n slots: replayed as $replay" ;; esac
    done
done
k3-trace info t.k3t | grep -E '^(steps|positions)'
