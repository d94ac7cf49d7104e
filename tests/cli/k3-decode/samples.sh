# SPDX-License-Identifier: Apache-2.0
# --samples N: N answers to each prompt, the k-th drawn with seed + k - 1, whatever the company. Which rows of --logits and
# --score-npy are whose is in the report; tables begin with the names of their columns.
# Would catch equal prompts with equal draws, and a draw that depends on the batch.
export K3_MODEL=$TINY/model
opt=(-q --gen 6 --stop-id none --temperature 1)
printf '5 6 7\n1 2\n' | k3-decode "${opt[@]}" --seed 10 --samples 3 >all
for prompt in "5 6 7" "1 2"; do
    for seed in 10 11 12; do echo "$prompt" | k3-decode "${opt[@]}" --seed $seed; done
done | cmp - all
sort -u all | wc -l
printf '5 6 7\n1 2\n' | k3-decode "${opt[@]}" --seed 10 --samples 3 --logits l.npy --logprobs p.tsv --report r.json | cmp - all
head -n 1 p.tsv; cut -f1 p.tsv | uniq -c | tr -s ' \n' ' '; echo
for i in 0 1 2 3 4 5; do echo "$(jsonq r.json sequences $i logits_rows first) $(jsonq r.json sequences $i logits_rows count)"; done
printf '5 6 7\n1\n\n1 2\n' | k3-decode -q --score --score-npy s.npy --report r.json | head -n 2
for i in 0 1 2 3; do echo "$(jsonq r.json sequences $i scores_rows first) $(jsonq r.json sequences $i scores_rows count)"; done
