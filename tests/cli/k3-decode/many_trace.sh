# SPDX-License-Identifier: Apache-2.0
# The engine's own cache counters against the simulator's, for every policy it
# offers and at the sizes where policies go wrong.
export K3_MODEL=$TINY/model
room=$(k3-decode -q --plan --disk-rate 1G --mem-limit 8G --trunk-gb 0 --cache-gb 1G --json | jsonq - memory 'expert cache')
slot=$((room / 384))
for policy in lru layers lfu; do
    for slots in 0 1 4 47 48 49 192 384; do
        { jsonq "$TINY/expected/expected.json" cases tonight prompt_ids; echo 9 8 7; } |
            k3-decode -q --gen 20 --trunk-gb 0 --cache-gb $((slots * slot))B --cache-policy $policy --trace t.k3t --report r.json > /dev/null
        [ "$(jsonq r.json plan expert_slots)" = $slots ] || echo "$(jsonq r.json plan expert_slots) slots, not $slots"
        k3-trace verify t.k3t > v || cat v
        grep -q ": $(jsonq r.json read expert_requests) requests, $(jsonq r.json read expert_hits) hits" v ||
            { echo "$policy $slots: the report has $(jsonq r.json read expert_requests) requests, $(jsonq r.json read expert_hits) hits"; cat v; }
    done
    echo "$policy agrees"
done
echo 1 2 3 | k3-decode -q --gen 2 --trace - | k3-trace info - | sed -n 's/^positions *//p'
# A later line that is longer would be planned for anew, with an empty cache: that is
# refused while a trace is written, unless it was planned for.
rm t.k3t; { echo 1 2; seq -s ' ' 1 200; } | k3-decode -q --gen 2 --batch 1 --trace t.k3t > /dev/null; echo "exit $?, $(ls t.k3t 2> /dev/null)"
{ echo 1 2; seq -s ' ' 1 200; } | k3-decode -q --gen 2 --batch 1 --context 202 --trace t.k3t
k3-trace info t.k3t | sed -n 's/^\(steps\|positions\) *//p'
k3-trace verify t.k3t > /dev/null && echo "verified"
