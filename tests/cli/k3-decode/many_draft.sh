# SPDX-License-Identifier: Apache-2.0
# Speculation does not change an id, a logit or a draw; where text repeats it saves
# reading, where it does not it costs next to nothing.
export K3_MODEL=$TINY/model
ids() { jsonq "$TINY/expected/expected.json" cases "$1" prompt_ids; }
for name in tonight sea unicode; do ids $name; done > lines
k3-decode -q --gen 60 --stop-id none < lines > plain
for memory in 24M 2G; do
    for draft in 1 2 3 4 5 6 7 8; do
        k3-decode -q --gen 60 --stop-id none --memory $memory --draft $draft --batch $((draft % 3 + 1)) < lines > drafted
        cmp drafted plain && echo "$memory: drafts of $draft"
    done
done
ids tonight | k3-decode -q --gen 60 --stop-id none --logits plain.npy > plain1
ids tonight | k3-decode -q --gen 60 --stop-id none --logits drafted.npy --draft 8 > drafted1
cmp plain.npy drafted.npy && cmp plain1 drafted1 && echo "the logits of every position too"
for draft in 0 6; do
    ids tonight | k3-decode -q --gen 60 --temperature 0.7 --seed 3 --draft $draft > drawn.$draft
done
cmp drawn.0 drawn.6 && echo "the same draws"

# The model repeats a sentence after its first hundred ids.
bytes() { echo $(($(jsonq "$1" read trunk_bytes) + $(jsonq "$1" read head_bytes) + $(jsonq "$1" read expert_bytes))); }
ids tonight | k3-decode -q --gen 160 --stop-id none > first
echo "$(ids tonight) $(cat first)" > repeating
for draft in 0 16; do
    k3-decode -q --gen 96 --stop-id none --trunk-gb 0 --cache-gb 0 --chunk 256 --draft $draft --report $draft.json < repeating > repeat.$draft
done
cmp repeat.0 repeat.16
[ $((3 * $(bytes 16.json))) -le "$(bytes 0.json)" ] && echo "repeating text reads at most a third" ||
    echo "repeating text: $(bytes 16.json) of $(bytes 0.json) bytes"
# So does the plainest of repetitions, "a b c d" twenty times and the end of the line.
k3-tok encode <<<"$(for _ in $(seq 20); do printf 'a b c d '; done)" > abcd
for draft in 0 16; do
    k3-decode -q --gen 60 --stop-id none --trunk-gb 0 --cache-gb 0 --chunk 256 --draft $draft --report $draft.json < abcd > abcd.$draft
done
cmp abcd.0 abcd.16
[ $((3 * $(bytes 16.json))) -le "$(bytes 0.json)" ] && echo "and so does a b c d" || echo "a b c d: $(bytes 16.json) of $(bytes 0.json) bytes"
[ "$(jsonq 16.json drafts accepted)" -gt 30 ] && [ "$(jsonq 16.json drafts saved_bytes)" -gt $(($(bytes 0.json) / 2)) ] ||
    echo "not in the report: $(jsonq 16.json drafts)"
# Draws among the three likeliest: now and then a pair of ids comes again, but hardly ever what followed it.
for seed in 1 2 3 11; do
    for draft in 0 16; do
        echo 1000 | k3-decode -q --gen 96 --temperature 50 --top-k 3 --seed $seed --stop-id none --trunk-gb 0 --cache-gb 0 --draft $draft --report $draft.json > random.$draft
    done
    cmp random.0 random.16
    [ "$(jsonq 16.json drafts proposed)" -gt 0 ] || echo "random text: nothing was ever proposed"
    [ $((100 * $(bytes 16.json))) -le $((103 * $(bytes 0.json))) ] && echo "random text at most 3 % more" ||
        echo "random text: $(bytes 16.json) of $(bytes 0.json) bytes"
done
