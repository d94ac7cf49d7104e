# SPDX-License-Identifier: Apache-2.0
# damaged headers and damaged indexes, the same ones every time
export K3_MODEL="$ODD/model"
n=0
seed() {
    n=$((n + 1))
    printf '%s' "$1" >"seed.$n"
}
seed '{"x":{"dtype":"U8","shape":[3,41],"data_offsets":[0,123]}}'
seed '{"__metadata__":{"a":"\u00e9"},"a":{"dtype":"F32","shape":[],"data_offsets":[119,123]},"b":{"dtype":"BF16","shape":[0,7],"data_offsets":[119,119]},"c":{"dtype":"I8","shape":[7,17],"data_offsets":[0,119]}}'
seed '{"language_model.model.layers.0.self_attn.A_log":{"dtype":"F32","shape":[24],"data_offsets":[0,96]},"x":{"dtype":"F6_E2M3","shape":[36],"data_offsets":[96,123]}}'
seed '{"language_model.model.layers.1.block_sparse_moe.experts.4.w1.weight_scale":{"dtype":"U8","shape":[160,3],"data_offsets":[0,480]}}'
fuzz-safetensors 8000 seed.1 seed.2 seed.3 seed.4
k3-index build -q --index x.index "$ODD/model"
fuzz-index 6000 x.index
