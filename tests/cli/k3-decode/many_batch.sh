# SPDX-License-Identifier: Apache-2.0
# Lines decoded together give what each gives alone, in input order, at two budgets:
# catches state, latents or logits rows that mix between sequences.
export K3_MODEL=$TINY/model
i=0
for n in 1 9 3 20 2 5 1 12 7 4 30 2 8 1 6 3 11; do
    i=$((i + 1))
    seq -s ' ' $((i * 13)) 7 $((i * 13 + 7 * (n - 1)))
done > lines
while read -r line; do echo "$line" | k3-decode -q --gen 10; done < lines > alone
for memory in 24M 2G; do
    for batch in 1 2 5 17; do
        k3-decode -q --gen 10 --memory $memory --batch $batch < lines > together
        cmp together alone && echo "$memory: $batch together as alone"
    done
done
k3-decode -q --gen 10 --report r.json < lines > together && cmp together alone
echo "by default $(jsonq r.json plan sequences) together in $(jsonq r.json read passes) passes"
# A line that reaches further than planned comes when nothing runs.
{ echo 5; seq -s ' ' 1 90; echo 6; } > growing
while read -r line; do echo "$line" | k3-decode -q --gen 4; done < growing > alone
(echo 5; sleep 0.2; seq -s ' ' 1 90; echo 6) | k3-decode -q --gen 4 > together
cmp together alone && echo "a longer line joins later"
