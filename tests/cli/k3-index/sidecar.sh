# SPDX-License-Identifier: Apache-2.0
# K3_SIDECAR: the files of a model whose folder is not written to
. "${0%/*}/common"
model
rm m/k3.index
mkdir side
export K3_SIDECAR=side
k3-index build -q m
k3-index verify -q m --write-sums | sed 's/, .* read/, read/'
k3-pack -q m
ls side
ls m | grep k3
k3-index check m
k3-pack info -m m | head -n 1
echo 84 257 1255 | k3-decode -q -m m --gen 2
# what is not there is looked for in the model folder; empty is not set
mv side/k3.index m
k3-index ls -m m lm_head.weight | cut -f 1
K3_SIDECAR="" k3-index ls -m m lm_head.weight | cut -f 1
# another model's files are refused
mkdir o && cp "$ODD/model"/*.json "$ODD/model"/*.safetensors o
run k3-pack info -m o 2>&1 | sed 's/[0-9a-f]\{32\}/F/g; s/^k3-pack: o: no k3.index.*/no index/'
