# SPDX-License-Identifier: Apache-2.0
# Options that would have no effect beside others are refused by name; a file called - has standard output for itself.
# Would catch an option that is taken and ignored, and two outputs mixed into one.
export K3_MODEL=$TINY/model
: >empty
while read -r line; do
    # shellcheck disable=SC2086
    k3-decode $line <empty 2>err >out; echo "$line: exit $?, $(grep -c . err) line, $(wc -c <out) bytes"
done <<'O'
--top-p 0.5
--top-k 3
--min-p 0.1
--seed 1
--samples 2
--score --gen 3
--perplexity --temperature 1
--score --stop-id 5
--json
--score --json
--ids
--spill off --scratch .
--batch 2 --save-state s
--temperature 1 --samples 2 --save-state s
--temperature 1 --samples 2 --converse
--logits - --report -
--stream-json --report -
--score --logits -
state --gen 3 empty
state -m x empty
O
ls
echo 1 2 3 | k3-decode -q --perplexity --json | jsonq /dev/stdin ids
for o in logits logprobs report trace save-state; do
    echo 1 2 3 | k3-decode -q --gen 2 --$o file >ids
    echo 1 2 3 | k3-decode -q --gen 2 --$o - >piped; echo "$o: exit $?"
    echo 1 2 3 | k3-decode -q --gen 2 --$o - | cat >piped2
    [ $o = report ] || { cmp file piped; cmp file piped2; }
done
jsonq piped2 status 2>&1 | head -c 0
echo 1 2 3 | k3-decode -q --gen 2 --report - | jsonq /dev/stdin generated_tokens
