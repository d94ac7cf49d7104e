# SPDX-License-Identifier: Apache-2.0
# one tensor: what the header says and how it begins
. "${0%/*}/common"
model
k3-index show -m m language_model.model.layers.0.self_attn.A_log
k3-index show -m m model.layers.3.self_attn.kv_a_layernorm.weight
k3-index show -m m --json model.layers.5.self_attn.q_conv1d.weight
k3-index show -m m --json model.layers.0.self_attn.A_log
k3-index show -m m model.layers.2.block_sparse_moe.experts.31.w2.weight_packed
k3-index show -m m "$(k3-index ls -m m vision | sed 1d | head -n 1 | cut -f 1)"
# values without a form in JSON
poke m/model-00001-of-000015.safetensors "$(offset model.layers.0.self_attn.A_log)" '\0\0\300\177\0\0\200\377'
k3-index show -m m model.layers.0.self_attn.A_log | tail -n 1
k3-index show -m m --json model.layers.0.self_attn.A_log | grep -o '"values.*'
run k3-index show -m m model.layers.3.self_attn.A_log
run k3-index show -m m model.layers.13.input_layernorm.weight
run k3-index show -m m ''
run k3-index show -m m "$(head -c 300 /dev/zero | tr '\0' x)"
rm m/model-00001*
ln -s m/nowhere m/model-00001-of-000015.safetensors
run k3-index show -m m model.norm.weight
