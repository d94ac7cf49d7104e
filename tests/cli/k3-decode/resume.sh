# SPDX-License-Identifier: Apache-2.0
# --load-state --resume takes the whole prompt and feeds what the state has not seen; anything else than a continuation is
# refused. Without --resume a prompt that repeats the history is warned about. `state --ids` prints it.
export K3_MODEL=$TINY/model
opt=(-q --gen 3 --stop-id none)
echo 77 121 700 | k3-decode "${opt[@]}" --save-state s
k3-decode state --ids s; k3-decode state --ids --json s
whole="$(k3-decode state --ids s) 5 6"
echo "$whole" | k3-decode "${opt[@]}" --load-state s --resume --report r.json | tee a
echo "$whole" | k3-decode "${opt[@]}" | cmp - a
echo "$whole" | k3-decode "${opt[@]}" --load-state s --resume --draft 2 --save-state t | cmp - a
# the history alone: its last id is still to be fed
k3-decode state --ids s | k3-decode "${opt[@]}" --load-state s --resume
echo | k3-decode "${opt[@]}" --load-state s
for prompt in "77 122 700 1 2 3 4" "77 121" "" "5"; do
    echo "$prompt" | k3-decode "${opt[@]}" --load-state s --resume; echo "exit $?"
done
echo 1 2 | k3-decode -q --gen 0 --save-state fed
echo 1 2 | k3-decode "${opt[@]}" --load-state fed --resume; echo "exit $?"
echo 1 2 3 | k3-decode "${opt[@]}" --load-state fed --resume
echo 1 2 | k3-decode --resume; echo "exit $?"
# the warning
echo "$whole" | k3-decode --gen 1 --load-state s 2>&1 | grep -o 'warning.*'
echo 77 121 701 | k3-decode --gen 1 --load-state s 2>&1 | grep -c warning
# --gen max: to the end of the room, or a stop id
echo 5 6 7 | k3-decode "${opt[@]}" --gen max --context 20 | wc -w
stop=$(echo 5 6 7 | k3-decode "${opt[@]}" --gen 6 | cut -d' ' -f6)
echo 5 6 7 | k3-decode -q --gen max --stop-id "$stop" | wc -w
printf '5 6 7\n1\n' | k3-decode "${opt[@]}" --gen max --context 20 --batch 2 | wc -w
seq -s' ' 20 | k3-decode "${opt[@]}" --gen max --context 20; echo "exit $?"
k3-decode --gen max --plan --memory 64M --disk-rate 1G --mem-limit 1G --threads 1 | grep -c 4128
