# SPDX-License-Identifier: Apache-2.0
# names with or without a pattern; with wildcards the whole name, with or without its prefix
. "${0%/*}/common"
model
k3-index ls -m m | sed 1d | wc -l
k3-index ls -m m | cut -f 1 | LC_ALL=C sort | uniq -d
k3-index ls -m m layers.12.self_attn
echo
k3-index ls -m m 'model.layers.1*.self_attn.q_?onv1d.weight'
echo
k3-index ls -m m 'language_model.model.layers.1.*experts.3.w[13].*scale'
echo
k3-index ls -m m 'vision*'
k3-index ls -m m --json vision
K3_MODEL=m k3-index ls 'lm_head.weight'
# anchored, so this is none
run k3-index ls -m m 'layers.12.*'
run k3-index ls -m m --json nothing
# a name that would break the table
rm m/*
cp "$TINY/model/config.json" m
shard m/model.safetensors '{"a\tb\nc\u001b[1m":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
run k3-index ls -m m
