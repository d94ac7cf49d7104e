# SPDX-License-Identifier: Apache-2.0
# the released names, shapes and sizes: figures of the census, and what check must see
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
. "${0%/*}/common"
mkckpt -q --config "$K3_REAL/config.json" --holes m
cp "$K3_REAL/shard_sizes.txt" sizes
zcat "$K3_REAL/model.safetensors.index.json.gz" >m/model.safetensors.index.json
k3-index build -q m
k3-index census m
k3-index ls -m m | sed 1d | cut -f 1 | LC_ALL=C sort >have
grep -o '"[^"]*": *"model-' m/model.safetensors.index.json | cut -d '"' -f 2 | LC_ALL=C sort | cmp - have
k3-index show -m m model.layers.92.block_sparse_moe.experts.895.w3.weight_scale | tail -n 5
[ "$(stat -c %s m/k3.index)" -lt 2000000 ] || echo "the index is larger than 2 MB"
run k3-index check -m m --sizes sizes
truncate -s -1 m/model-00017-of-000096.safetensors
truncate -s +1 m/model-00021-of-000096.safetensors
mv m/model-00050-of-000096.safetensors m/model-00050-of-000096.safetensors.incomplete
touch -d 2001-01-01 m/model-00093-of-000096.safetensors
run k3-index check -m m --sizes sizes | sed 's/, but modified at.*/, but modified/; s/modified at .*/modified at T/'
