# SPDX-License-Identifier: Apache-2.0
# Log-probabilities of given ids: the mean of every case against the float64 reference.
export K3_MODEL=$TINY/model
for name in tonight sea president whale fellow congress economy unicode one eots long; do
    want=$(jsonq "$TINY/expected/expected.json" cases $name mean_nll)
    ids="$(jsonq "$TINY/expected/expected.json" cases $name prompt_ids) $(jsonq "$TINY/expected/expected.json" cases $name greedy_ids)"
    got=$(echo "$ids" | k3-decode -q --perplexity | sed -n 's/^mean_nll //p')
    awk -v a="$want" -v b="$got" -v n=$name 'BEGIN { d = a - b; if (d < 0) d = -d; print n, d < 5e-5 ? "agrees" : a " is not " b }'
done
# Greedy ids are rank 0 and their own argmax; the first id has no score.
ids=$(jsonq "$TINY/expected/expected.json" cases sea prompt_ids)
greedy=$(jsonq "$TINY/expected/expected.json" cases sea greedy_ids)
{ echo "$ids $greedy"; echo 5; echo; echo 1 2; } | k3-decode -q --score --score-npy s.npy > s.tsv
awk '$1 == 1 && $2 >= 3 && ($5 != 0 || $6 != $3) { bad = 1 } END { print bad ? "not greedy" : "greedy ids rank 0" }' s.tsv
echo "lines scored: $(sed 1d s.tsv | cut -f1 | uniq -c | tr -s ' ' | tr '\n' ';')"
head -c 128 s.npy | grep -ao "'shape': ([0-9, ]*)"
# The batch's scores are those of the lines alone.
{ echo "$ids $greedy"; echo 1 2 3 4 5; } | k3-decode -q --score > together
{ echo "$ids $greedy" | k3-decode -q --score; echo 1 2 3 4 5 | k3-decode -q --score | sed '1d; s/^1/2/'; } | cmp - together && echo "as alone"
printf '1\n\n' | k3-decode -q --perplexity
# Through a pipe come the same bytes, the count of rows in front included.
{ echo "$ids $greedy"; echo 5; echo; echo 1 2; } > lines
k3-decode -q --score-npy >(cat > piped.npy; touch ended) < lines >/dev/null
until [ -e ended ]; do sleep 0.05; done
cmp s.npy piped.npy && echo "the same through a pipe"
