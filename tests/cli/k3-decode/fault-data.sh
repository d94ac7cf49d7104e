# SPDX-License-Identifier: Apache-2.0
# Files that were changed: a cut or flipped index or trunk file, shards that are shorter, replaced or gone since the
# index was made, bytes that disagree with k3.sums. Each is named and ends the run with 1 (an expert with 4) before an
# id that depends on it; what is not used is not checked.
# Would catch a checksum that is computed and not compared, and a stale file taken for the current one.
. "${0%/*}/fault-common"
model tiny m
echo 77 121 700 1015 >prompts
k3-decode -q -m m --gen 4 --threads 1 --logits want.npy --trace t.k3t <prompts >want
k3-pack -q m -o whole.trunk --tile 64Ki
mv whole.trunk m/k3.trunk
whole=$(stat -c %s m/k3.trunk)

# flip FILE OFFSET: one bit; a second time restores it. The times of the file stay.
flip() {
    touch -r "$1" stamp
    local byte
    byte=$(od -An -tu1 -j"$2" -N1 "$1")
    printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
    touch -r stamp "$1"
}
# middle_of TENSOR: the path of its shard and the place of its middle byte
middle_of() {
    local word
    read -ra word < <(place "$1")
    echo "m/${word[0]} ${word[1]#from=}"
}
stream=(--trunk-gb 0 --cache-gb 0)

echo "== trunk file: a tile in the middle, one that stays, one of the head"
flip m/k3.trunk 2000000
fails "" "${stream[@]}"
fails "" --trunk-gb 1
recovered=0
recovers "" --trunk none "${stream[@]}"
flip m/k3.trunk 2000000
flip m/k3.trunk $((whole - 100000))
fails "" "${stream[@]}"
k3-decode -q -m m --gen 0 "${stream[@]}" <prompts # needs no head
flip m/k3.trunk $((whole - 100000))
echo "== trunk file: header and table"
for at in 0 9 40 200 5000; do
    flip m/k3.trunk $at
    with "" k3-decode -q -m m --gen 4 "${stream[@]}" <prompts >got 2>err
    status=$?
    # a byte of padding may change nothing, but then the answer is the right one
    if [ $status -ne 1 ] && ! { [ $status -eq 0 ] && cmp -s want got; }; then echo "byte $at: exit $status"; cat err; fi
    flip m/k3.trunk $at
done
echo "== trunk file: cut, of another checkpoint, not a trunk file"
for size in 0 100 4096 2000000 $((whole - 1)); do
    head -c $size m/k3.trunk >cut.trunk
    with "" k3-decode -q -m m --gen 4 --trunk cut.trunk "${stream[@]}" <prompts >got 2>err
    status=$?
    [ $status -eq 1 ] && [ ! -s got ] || { echo "cut at $size: exit $status"; cat err; }
done
model odd o
k3-pack -q o -o odd.trunk
fails "" --trunk odd.trunk
fails "" --trunk m/config.json
fails "" --trunk gone.trunk
rm m/k3.trunk

echo "== index"
cp m/k3.index whole.index
size=$(stat -c %s whole.index)
for at in 0 20 $((size / 2)) $((size - 1)); do
    cp whole.index m/k3.index
    flip m/k3.index "$at"
    k3-decode -q -m m --gen 4 <prompts >got 2>err
    status=$?
    [ $status -eq 1 ] && [ ! -s got ] || { echo "index flipped at $at: exit $status"; cat err; }
    head -c "$at" whole.index >m/k3.index
    k3-decode -q -m m --gen 4 <prompts >got 2>err
    status=$?
    [ $status -eq 1 ] && [ ! -s got ] || { echo "index cut at $at: exit $status"; cat err; }
done
cp whole.index m/k3.index

echo "== shards since the index was made: shorter, other header, gone, touched only"
cp m/model-00004-of-000015.safetensors saved
truncate -s -1 m/model-00004-of-000015.safetensors
fails ""
cp m/model-00008-of-000015.safetensors m/model-00004-of-000015.safetensors
fails ""
rm m/model-00004-of-000015.safetensors
fails ""
cp saved m/model-00004-of-000015.safetensors
touch m/model-00004-of-000015.safetensors
recovers ""
echo "$recovered recovered"

echo "== checksums of the shards"
k3-index verify -q -m m --write-sums >/dev/null
read -r file at < <(middle_of model.layers.2.self_attn.g_proj.weight)
flip "$file" "$at"
fails "" "${stream[@]}"
fails "" --trunk-gb 1 --cache-gb 1
flip "$file" "$at"
read -r file at < <(middle_of model.layers.7.post_attention_layernorm.weight)
flip "$file" "$at"
fails "" "${stream[@]}"
flip "$file" "$at"
read -r file at < <(middle_of lm_head.weight)
flip "$file" "$at"
fails "" --tile 64Ki "${stream[@]}"
flip "$file" "$at"
# the row of the third id to be fed after the prompt
read -r file at < <(k3-index show -q -m m --json language_model.model.embed_tokens.weight >e.json &&
    echo "m/$(jsonq e.json shard) $(($(jsonq e.json offset) + 256 * $(cut -d' ' -f3 want) + 77))")
flip "$file" "$at"
fails "" "${stream[@]}"
flip "$file" "$at"
used=$(k3-trace cat t.k3t | awk '$5 == 5 { sub(/:.*/, "", $6); print $6; exit }')
read -r file at < <(middle_of "model.layers.5.block_sparse_moe.experts.$used.w2.weight_scale")
flip "$file" "$at"
fails "" "${stream[@]}"
fails "" --cache-gb 1
flip "$file" "$at"
# one that no token asks for
unused=$(k3-trace cat t.k3t | awk '$5 == 5 { for (i = 6; i <= NF; i++) { sub(/:.*/, "", $i); seen[$i] = 1 } }
    END { for (i = 31; i >= 0; i--) if (!seen[i]) { print i; exit } }')
read -r file at < <(middle_of "model.layers.5.block_sparse_moe.experts.$unused.w2.weight_scale")
flip "$file" "$at"
recovers ""
flip "$file" "$at"
recovers "" "${stream[@]}"
echo "$recovered recovered"
echo "== the checksums themselves: cut, of another checkpoint"
cp m/k3.sums whole.sums
truncate -s -1 m/k3.sums
fails ""
k3-index verify -q -m o --write-sums >/dev/null
cp o/k3.sums m/k3.sums
fails ""
