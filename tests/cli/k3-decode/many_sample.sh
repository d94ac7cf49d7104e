# SPDX-License-Identifier: Apache-2.0
# Draws are a function of logits, options and position: the same on every
# instruction set, in company, after resuming. The ids are goldens.
export K3_MODEL=$TINY/model
p=$(jsonq "$TINY/expected/expected.json" cases tonight prompt_ids)
draw() { echo "$p" | k3-decode -q --gen 12 "$@"; }
draw --temperature 1 --seed 1
draw --temperature 1 --seed 2
draw --temperature 0.7 --top-k 5 --seed 1
draw --temperature 1.3 --top-p 0.5 --seed 1
draw --temperature 1.3 --min-p 0.2 --seed 1
draw > greedy
draw --temperature 1 --top-k 1 | cmp - greedy && echo "the likeliest alone is greedy"
draw --temperature 0.001 | cmp - greedy && echo "cold is greedy"
draw --temperature 1 --top-p 0 | cmp - greedy && echo "the smallest nucleus is greedy"
draw --temperature 1 --seed 1 > one
K3_ISA=scalar draw --temperature 1 --seed 1 | cmp - one && echo "plain kernels draw the same"
{ echo 5 6 7; echo "$p"; } | k3-decode -q --gen 12 --temperature 1 --seed 1 | sed -n 2p | cmp - one && echo "in company too"
echo "$p" | k3-decode -q --gen 5 --temperature 1 --seed 1 --save-state s > a
echo | k3-decode -q --gen 7 --temperature 1 --seed 1 --load-state s > b
echo "$(cat a) $(cat b)" | cmp - one && echo "and after resuming"
echo "$p" | k3-decode -q --gen 2 --logprobs lp.tsv --stream-json; cat lp.tsv
