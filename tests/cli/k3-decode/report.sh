# SPDX-License-Identifier: Apache-2.0
# --report: strict JSON with what was asked, what came out and what was read.
export K3_MODEL=$TINY/model
printf '1 2 3\n\n4\n' | k3-decode -q --gen 4 --stop-id none --report r.json >out.txt; echo "exit $?"
for k in version isa threads layers prompt_tokens generated_tokens status error; do echo "$k: $(jsonq r.json $k)"; done |
    sed -E 's/^(isa): (scalar|avx2|avx512|avx512vbmi2|neon)$/\1: ok/; s/^(threads): [1-9][0-9]*$/\1: ok/'
jsonq r.json fingerprint | grep -c -E '^[0-9a-f]{32}$'
[ "$(jsonq r.json model)" = "$K3_MODEL" ] || echo "another model"
jsonq r.json sequences 0 prompt_ids
jsonq r.json sequences 1 prompt_ids | wc -w
for i in 0 1 2; do jsonq r.json sequences $i ids; done | cmp - out.txt
# Bytes: every one-token pass reads head, trunk and four experts a MoE layer once.
echo 5 | k3-decode -q --gen 3 --stop-id none --memory 256M --report a.json >out.txt
requests=$(jsonq a.json read expert_requests)
echo "requests $requests = hits + misses: $(($(jsonq a.json read expert_hits) + $(jsonq a.json read expert_misses)))"
jsonq a.json read embedding_bytes
# Names that JSON must escape.
d=$(printf 'a "b"\\\n\x01\xc3\xa9'); mkdir "$d" && cp -r "$TINY/model" "$d/m"
echo 1 | k3-decode -q --gen 1 -m "$d/m" --report r.json >out.txt; [ "$(jsonq r.json model)" = "$d/m" ] && echo "name kept"
