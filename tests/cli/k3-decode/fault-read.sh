# SPDX-License-Identifier: Apache-2.0
# A read that fails: of the trunk 3, of an expert 4, of a row of the embedding 3; bytes that are not there: 1, of an
# expert 4. No id that depends on them is written, and the report tells. Reads that fall short, are interrupted or are
# refused by the file system for direct reading only change nothing.
# Would catch an expert left out silently, a tile used although its read failed, and a failure of a tile that is pinned.
. "${0%/*}/fault-common"
model tiny m
echo 77 121 700 1015 >prompts
k3-decode -q -m m --gen 4 --threads 1 --logits want.npy --trace t.k3t <prompts >want
matrix="read $(place model.layers.2.self_attn.g_proj.weight)"
vector="read $(place model.layers.2.input_layernorm.weight)"
head="read $(place lm_head.weight)"
row="read $(place model.embed_tokens.weight | sed 's/ to=.*//; s/from=.*/from=1 to=524000/')"
# experts of layer 5: one that the prompt needs, and one that the first step after it is the first to need
k3-trace cat t.k3t | awk '$5 == 5' | sed 's/:[0-9.]*//g' >layer5
early=$(awk 'NR == 1 { print $6 }' layer5)
late=$(awk '$4 == "prefill" { for (i = 6; i <= NF; i++) seen[$i] = 1; next }
            { for (i = 6; i <= NF; i++) if (!seen[$i]) { print $i; exit } }' layer5)
early="read $(place model.layers.5.block_sparse_moe.experts.$early.w2.weight_packed)"
late="read $(place model.layers.5.block_sparse_moe.experts.$late.w3.weight_scale)"
stream=(--trunk-gb 0 --cache-gb 0)

echo "== trunk"
fails "$matrix EIO" "${stream[@]}"
fails "$matrix EIO" --trunk-gb 1
fails "$matrix after=2 EIO" "${stream[@]}"
fails "$matrix EIO" --ring 2 --io-depth 1 --tile 64Ki "${stream[@]}"
fails "$matrix short=0" "${stream[@]}"
fails "$vector EIO" --direct off "${stream[@]}"
echo "== head"
fails "$head EIO" "${stream[@]}"
fails "$head after=1 EIO" "${stream[@]}"
fails "$head after=3 EIO" --chunk 1 --tile 64Ki --io-depth 1 "${stream[@]}"
echo "== embedding"
# of a small model, the first reads look at its header and at a sample of its weights
fails "$row EIO" "${stream[@]}"
fails "$row after=2 EIO" "${stream[@]}"
fails "$row after=7 EIO" "${stream[@]}"
fails "$row after=2 short=0" "${stream[@]}"
echo "== expert of the prompt"
fails "$early EIO" "${stream[@]}"
fails "$early EIO" --trunk-gb 1 --cache-gb 1
fails "$early EIO" --cache-gb 100000B --chunk 1 --io-depth 1
fails "$early short=0" "${stream[@]}"
echo "== expert of the first step"
fails "$late EIO" --direct off "${stream[@]}"
fails "$late EIO" --direct off --trunk-gb 1 --cache-gb 1
echo "== packed"
k3-pack -q m -o t.trunk --tile 64Ki
fails "read t.trunk from=2000000 to=2000001 EIO" --trunk t.trunk "${stream[@]}"
fails "read t.trunk from=2000000 to=2000001 after=2 EIO" --trunk t.trunk "${stream[@]}"
fails "read t.trunk from=2000000 to=2000001 short=0" --trunk t.trunk "${stream[@]}"

recovered=0
for f in "read safetensors short=3000" "read safetensors short=4096" "$vector short=1" "read safetensors times=20 EINTR" \
    "read safetensors direct EINVAL" "read safetensors direct after=30 EINVAL" "read safetensors direct short=512"; do
    recovers "$f" "${stream[@]}"
    recovers "$f" --trunk-gb 2M --tile 64Ki --chunk 1
done
recovers "read t.trunk short=5000" --trunk t.trunk "${stream[@]}"
recovers "read t.trunk direct EINVAL" --trunk t.trunk --trunk-gb 1
echo "$recovered recovered"

# what was read ahead for a pass that never comes may fail: the third id ends the line, the matrix fails in a fourth pass
k3-decode -q -m m --gen 3 --threads 1 <prompts >want
with "$matrix after=3 EIO" k3-decode -q -m m --gen 9 --stop-id "$(cut -d' ' -f3 want)" --ring 40 "${stream[@]}" <prompts | cmp - want
