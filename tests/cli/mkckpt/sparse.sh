# SPDX-License-Identifier: Apache-2.0
# Sparse: routers, vectors and the rows that prompts and answers use are real, the rest are holes.
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
mkckpt -q --config "$K3_REAL/config.json" --layers 4 --sparse m
du -sm m | awk '$1 < 450 || $1 > 650 {print "takes " $1 " MB"}'
# content NAME [OFFSET]: are 64 bytes of a tensor real or a hole
content() {
    local n begin
    n=$(od -An -tu8 -N8 "$shard")
    begin=$(head -c $((n + 8)) "$shard" | grep -a -o "\"$1\":{[^}]*" | sed 's/.*"data_offsets":\[\([0-9]*\),.*/\1/')
    od -An -v -tu1 -w1 -j $((8 + n + begin + ${2:-0})) -N 64 "$shard" |
        awk '$1 > 0 {k++} END {print (k > 30) ? "real" : k ? "some" : "hole"}'
}
for t in 1.block_sparse_moe.gate.weight 3.block_sparse_moe.gate.e_score_correction_bias 0.self_attn.A_log \
    2.self_attn.dt_bias 2.mlp_res_proj.weight 2.mlp_res_norm.weight 1.self_attn.q_proj.weight \
    1.block_sparse_moe.experts.895.w3.weight_scale 3.self_attn.kv_b_proj.weight; do
    shard=m/model-0000$((${t%%.*} + 1))-of-000007.safetensors
    echo "$t $(content "language_model.model.layers.$t")"
done
shard=m/model-00005-of-000007.safetensors
for id in 0 8192 32767 100000 163839; do
    echo "$id $(content language_model.model.embed_tokens.weight $((id * 14336)))" \
        "$(content language_model.lm_head.weight $((id * 14336)))"
done
