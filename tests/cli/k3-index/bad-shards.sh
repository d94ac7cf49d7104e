# SPDX-License-Identifier: Apache-2.0
# what is wrong with a shard is said with its name, the tensor, the place and both values; exit 1
. "${0%/*}/common"
model
rm m/k3.index
s=model-00003-of-000015.safetensors
try() {
    run k3-index build -q -m m
    cp "$TINY/model/$s" m
}
truncate -s -1 m/$s; try
printf x >>m/$s; try
head -c 4 "$TINY/model/$s" >m/$s; try
head -c 20000 "$TINY/model/$s" >m/$s; try
poke m/$s 0 '\377\377\377\377\377\377\377\377'; try
poke m/$s 8 '['; try
sed -i '1s/"BF16","shape":\[128\]/"BF16","shape":[129]/' m/$s; try
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 567888\n' >m/$s; try
echo '<!doctype html><title>404</title>' >m/$s; try
cp "$TINY/model/model-00001-of-000015.safetensors" m/$s; try
mv m/$s m/$s.incomplete; try; rm m/$s.incomplete
sed -i 's/layers\.2\.input_layernorm/layers.2.inputs_layernor/' m/$s; try
sed -i 's/"language_model\.model/"language-model.model/g' m/*.safetensors; try
cp "$TINY/model/"*.safetensors m
k3-index build -q -m m
poke m/model-00001-of-000015.safetensors $(($(offset model.layers.0.self_attn.A_log) + 4 * 31)) '\0\0\200\77'; try
rm m/model-0000[4-9]*; try
rm m/*.safetensors; try; rm m/*
cp "$TINY/model/config.json" m
: >m/model.safetensors; try
