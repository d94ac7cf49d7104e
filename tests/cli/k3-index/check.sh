# SPDX-License-Identifier: Apache-2.0
# check names everything at once: on standard output, the count on standard error, exit 1
. "${0%/*}/common"
model
(cd m && stat -c '%n %s' model-*.safetensors) >sizes
run k3-index check m
run k3-index check -m m --sizes sizes --threads 1
run k3-index check -m m --sizes sizes --json
s=model-00003-of-000015.safetensors t=model-00005-of-000015.safetensors
# two shards wrong in opposite directions: the total is right
truncate -s -1 m/$s
printf x >>m/$t
run k3-index check -m m --sizes sizes
run k3-index check -m m --json
cp "$TINY/model/"*.safetensors m
rm m/k3.index
run k3-index check m
k3-index build -q m
touch -d '2001-02-03 04:05:06.5 UTC' m/$s
run k3-index check m | sed 's/, not .*/, not T/'
k3-index build -q m
mv m/$t m/$t.incomplete
run k3-index check m
mv m/$t.incomplete m/$t
# several wrong tensors in one shard
sed -i 's/layers\.2\.input_layernorm/layers.2.inputs_layernor/; s/experts\.31\.w1\.weight_scale/experts.32.w1.weight_scale/' m/$s
rm m/k3.index
run k3-index check m
cp "$TINY/model/$s" m
# the list of sizes itself
sed -e 's/00003-of-000015.safetensors 568048/00003-of-000015.safetensors 568047/' -e 2d sizes >other
echo "extra.bin 7" >>other
run k3-index check -m m --sizes other
echo "one two three" >other
run k3-index check -m m --sizes other
run k3-index check -m m --sizes nowhere
# the list of names beside the shards
sed -e 's/"language_model.model.norm.weight": "model-00014/"language_model.model.norm.weight": "model-00013/' \
    -e 's/"language_model.lm_head.weight"/"lm_head.weight"/' "$TINY/model/model.safetensors.index.json" >m/model.safetensors.index.json
run k3-index check m
echo '{"weight_map": 1}' >m/model.safetensors.index.json
run k3-index check m
echo '{' >m/model.safetensors.index.json
run k3-index check m
rm m/model.safetensors.index.json
echo x >m/k3.sums
run k3-index check m
rm m/k3.sums
echo x >m/k3.index
run k3-index check m
run k3-index check m --index none.index
run k3-index check nowhere
