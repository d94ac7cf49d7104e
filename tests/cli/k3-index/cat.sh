# SPDX-License-Identifier: Apache-2.0
# tensors as .npy: bf16 widens, float32 and bytes stay
. "${0%/*}/common"
model
# head NPY: type and shape; values are whatever follows byte 128
head_of() { head -c 128 "$1" | tail -c +11 | tr -d ' \n'; echo; }
k3-index cat -m m model.layers.7.self_attn.kv_b_proj.weight >a.npy
head_of a.npy
tail -c +129 a.npy | wc -c
# against the shard itself: the upper halves of the words, the lower ones zero
o=$(offset model.layers.7.self_attn.kv_b_proj.weight)
tail -c +129 a.npy | od -An -v -tx2 -w4 | awk '{print $2; if ($1 != "0000") print "low half", $1}' >have
tail -c +$((o + 1)) m/model-00008-of-000015.safetensors | head -c 16384 | od -An -v -tx2 -w2 | tr -d ' ' >want
cmp have want
k3-index cat -m m model.layers.0.self_attn.A_log >b.npy
head_of b.npy
tail -c +129 b.npy | od -An -tfF | head -n 1
k3-index cat -m m model.layers.0.self_attn.k_conv1d.weight >c.npy
head_of c.npy
k3-index cat -m m model.layers.4.block_sparse_moe.experts.7.w2.weight_scale >d.npy
head_of d.npy
tail -c +129 d.npy | cmp - <(tail -c +$(($(offset model.layers.4.block_sparse_moe.experts.7.w2.weight_scale) + 1)) m/model-00005-of-000015.safetensors | head -c 128)
# the embedding takes several reads
k3-index cat -m m model.embed_tokens.weight | tail -c +129 | od -An -v -tx2 -w4 | awk '{print $2}' | cksum
tail -c +$(($(offset model.embed_tokens.weight) + 1)) m/model-00014-of-000015.safetensors | head -c $((2048 * 128 * 2)) | od -An -v -tx2 -w2 | tr -d ' ' | cksum
k3-index cat -m m model.embed_tokens.weight | head -c 5 | od -An -tx1
run k3-index cat -m m model.layers.4.block_sparse_moe.experts.7.w2
run k3-index cat -m m --decode model.norm.weight
run k3-index cat -m m --decode model.nothing
# dtypes of others
rm m/k3.index
shard m/model-00015-of-000015.safetensors '{"h":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"f8":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[4,8]},"big":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[8,9]},"i":{"dtype":"I64","shape":[1],"data_offsets":[9,17]},"odd":{"dtype":"I8","shape":[3],"data_offsets":[17,20]}}' 20
k3-index build -q m
for t in h i odd; do k3-index cat -m m $t >x.npy; head_of x.npy; done
run k3-index cat -m m f8
run k3-index cat -m m big
script -qec 'k3-index cat -m m h' /dev/null </dev/null | tr -d '\r'
