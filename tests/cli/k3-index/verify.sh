# SPDX-License-Identifier: Apache-2.0
# the full read: odd values by name and place, padding, checksums
. "${0%/*}/common"
model
run k3-index verify -q m
run k3-index verify -q -m m --threads 1 --json
w=model.layers.1.block_sparse_moe.experts.5.w3
s=m/model-00002-of-000015.safetensors
# a NaN, two infinities, one of them negative; a float32 NaN; two scale bytes 255; a vision NaN
poke $s $(($(offset model.layers.1.self_attn.q_proj.weight) + 2 * 1000)) '\300\177'
poke $s $(($(offset model.layers.1.self_attn.q_proj.weight) + 2 * 2000)) '\200\177\200\377'
poke $s "$(offset model.layers.1.self_attn.dt_bias)" '\1\0\200\177'
poke $s $(($(offset $w.weight_scale) + 64 * 2 - 2)) '\377\377'
poke $s "$(offset $w.weight_packed)" '\377\377'
v=$(k3-index ls -m m vision | sed 1d | head -n 1 | cut -f 1)
poke m/model-00015-of-000015.safetensors "$(offset "$v")" '\200\377'
run k3-index verify -q m
run k3-index verify -q m --json
# odd values get their checksums like any others
run k3-index verify -q m --write-sums
run k3-index verify -q m
ls m | grep k3
cp "$TINY/model/"*.safetensors m
run k3-index verify -q m
k3-index verify m --write-sums 2>err
sed 's/in .*/in T/' err
k3-index verify -q m
# one bit in an expert, in the last row of the head, in a vector
poke $s $(($(offset $w.weight_packed) + 2047)) '\1'
poke m/model-00014-of-000015.safetensors $(($(offset lm_head.weight) + 2047 * 256)) '\1'
poke $s "$(offset model.layers.1.input_layernorm.weight)" '\1'
run k3-index verify -q m
run k3-index cat -m m $w.weight_packed
run k3-index cat -m m --decode $w
run k3-index cat -m m lm_head.weight | tail -c +524417 | od -An -tx1 | tail -n 1
run k3-index cat -m m model.layers.1.input_layernorm.weight
cp "$TINY/model/"*.safetensors m
# the sidecar elsewhere, foreign, cut, damaged, missing
k3-index verify -q m --write-sums --sums "x y.sums" && cmp "x y.sums" m/k3.sums
rm m/k3.sums
run k3-index verify -q m --sums "x y.sums"
run k3-index verify -q m --sums missing.sums
head -c 1000 "x y.sums" >m/k3.sums
run k3-index verify -q m
head -c 20 "x y.sums" >m/k3.sums
run k3-index verify -q m
cp "x y.sums" m/k3.sums
poke m/k3.sums 2000 '\125\125\125\125\125\125\125\125'
run k3-index verify -q m
cp "x y.sums" m/k3.sums
poke m/k3.sums 50 '\125'
run k3-index verify -q m
echo "this is a text and no file of checksums, but it is long enough for the head of one, which takes $(seq 100)" >m/k3.sums
run k3-index verify -q m
run k3-index verify -q -m "$ODD/model" --sums "x y.sums"
run k3-index verify -q m --write-sums --sums /dev/null
run k3-index verify -q m --write-sums --sums no/such/x
# padding that is none, behind the index's back
poke m/model-00001-of-000015.safetensors $(($(offset model.layers.0.self_attn.A_log) + 4 * 31)) '\0\0\200\77'
rm m/k3.sums
run k3-index verify -q m --write-sums
ls m | grep sums
exit 0
