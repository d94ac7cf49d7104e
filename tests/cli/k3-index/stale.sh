# SPDX-License-Identifier: Apache-2.0
# an index that no longer describes the folder
. "${0%/*}/common"
model
s=model-00003-of-000015.safetensors
cp m/$s keep
touch -d 2001-01-01 m/$s
run k3-index show -m m model.norm.weight | head -n 1
truncate -s -1 m/$s
run k3-index show -m m model.norm.weight
rm m/$s
run k3-index census -m m
cp keep m/$s
poke m/$s 100 x
run k3-index cat -m m model.norm.weight
cp keep m/$s
k3-index show -m m model.norm.weight | head -n 1
sed -i 's/"rms_norm_eps": [^,]*,/"rms_norm_eps": 1e-6,/' m/config.json
run k3-index ls -m m
cp "$TINY/model/config.json" m
cp m/k3.index whole
head -c 5000 whole >m/k3.index
run k3-index ls -m m
head -c 100 whole >m/k3.index
run k3-index ls -m m
: >m/k3.index
run k3-index ls -m m
echo "not an index, but as long as the head of one" >m/k3.index
run k3-index ls -m m
cp whole m/k3.index
poke m/k3.index 8 '\001'
run k3-index ls -m m
cp whole m/k3.index
poke m/k3.index 3000 '\125\125\125'
run k3-index ls -m m
cp whole m/k3.index
poke m/k3.index 40 '\125'
run k3-index ls -m m
cp whole m/k3.index
poke m/k3.index $(($(stat -c %s whole) - 16)) x
run k3-index ls -m m
echo >>m/k3.index
run k3-index ls -m m
cp "$ODD/model/"*.safetensors .
k3-index build -q --index m/k3.index "$ODD/model"
run k3-index ls -m m
