# SPDX-License-Identifier: Apache-2.0
# A prompt in chunks of 1 to all: the same logits bits, and exact bytes: the trunk
# once a chunk, the head where logits are wanted, each distinct expert once a chunk.
export K3_MODEL=$TINY/model
p=$(jsonq "$TINY/expected/expected.json" cases whale prompt_ids)
echo "$p" | k3-decode -q --gen 3 --logits whole.npy --stop-id none > whole
for memory in 24M 2G; do
    for chunk in 1 2 3 5 8 13 20 21 22; do
        echo "$p" | k3-decode -q --gen 3 --logits part.npy --stop-id none --memory $memory --chunk $chunk > part
        cmp whole part && cmp whole.npy part.npy || echo "chunk $chunk differs"
    done
    echo "$memory: all chunks"
done
trunk=4124688 head=525056
for chunk in 1 4 21; do
    echo "$p" | k3-decode -q --gen 1 --trunk-gb 0 --cache-gb 0 --chunk $chunk --report r.json --trace t.k3t > /dev/null
    passes=$(((21 + chunk - 1) / chunk))
    [ "$(jsonq r.json read trunk_bytes)" = $((passes * trunk)) ] || echo "trunk: $(jsonq r.json read trunk_bytes)"
    [ "$(jsonq r.json read head_bytes)" = $head ] || echo "head: $(jsonq r.json read head_bytes)"
    [ "$(jsonq r.json read embedding_bytes)" = $((21 * 256)) ] || echo "embedding: $(jsonq r.json read embedding_bytes)"
    distinct=$(k3-trace cat t.k3t | awk '{ for (i = 6; i <= NF; i++) { split($i, e, ":"); if (!seen[$1, $5, e[1]]++) n++ } } END { print n }')
    [ "$(jsonq r.json read expert_bytes)" = $((distinct * 6528)) ] || echo "experts: $(jsonq r.json read expert_bytes) for $distinct"
    echo "chunk $chunk: $passes passes"
done
