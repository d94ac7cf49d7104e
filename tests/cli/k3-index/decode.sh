# SPDX-License-Identifier: Apache-2.0
# MXFP4: every nibble, every kind of scale byte; both parts and the stem name the same matrix
. "${0%/*}/common"
model
w=model.layers.1.block_sparse_moe.experts.5.w3
s=m/model-00002-of-000015.safetensors
p=$(offset $w.weight_packed) q=$(offset $w.weight_scale)
# row 0: byte j holds 2j and 2j+1, so nibbles count up; then down; scales 1 and 2
poke $s "$p" '\20\62\124\166\230\272\334\376\20\62\124\166\230\272\334\376\357\315\253\211\147\105\043\001\357\315\253\211\147\105\043\001'
poke $s "$q" '\177\200'
# row 1: the smallest scale, and 255
poke $s $((p + 32)) '\20\62\124\166\230\272\334\376\20\62\124\166\230\272\334\376\20\62\124\166\230\272\334\376\20\62\124\166\230\272\334\376'
poke $s $((q + 2)) '\0\377'
# row 2: the largest scale
poke $s $((p + 64)) '\20\62\124\166\230\272\334\376\20\62\124\166\230\272\334\376\20\62\124\166\230\272\334\376\20\62\124\166\230\272\334\376'
poke $s $((q + 4)) '\376\1'
k3-index cat -m m --decode $w >a.npy
k3-index cat -m m --decode $w.weight_packed | cmp - a.npy
k3-index cat -m m --decode language_model.$w.weight_scale | cmp - a.npy
head -c 128 a.npy | tail -c +11 | tr -d ' \n'
echo
tail -c +129 a.npy | head -c $((3 * 64 * 4)) | od -An -v -tfF -w64 | sed 's/  */ /g'
