# SPDX-License-Identifier: Apache-2.0
# A checkpoint that cannot be meant as it is: A_log entries past the heads, with and without an index; a stale index.
. "$(dirname "$0")/../k3-layer/npy.bash"
cp -r "$ODD/model" m && rm -f m/k3.index
k3-index -q build -m m >/dev/null
shard=m/model-00002-of-000009.safetensors
at=$(k3-index show -m m model.layers.1.self_attn.A_log | sed -n 's/^offset *//p')
cp -p $shard whole
touch -r $shard stamp
floats 1 | dd of=$shard bs=1 seek=$((at + 4 * 23)) conv=notrunc status=none
touch -r stamp $shard
echo 1 2 | k3-decode -q -m m --gen 2 --logits l.npy; echo "exit $?"
rm m/k3.index
echo 1 2 | k3-decode -q -m m --gen 2 --logits l.npy; echo "exit $?"
cp -p whole $shard
echo 1 2 | k3-decode -q -m m --gen 2; echo "exit $?"
# An index that another shard has replaced.
k3-index -q build -m m >/dev/null
printf ' ' >>$shard
echo 1 2 | k3-decode -q -m m --gen 2; echo "exit $?"
rm m/k3.index $shard
echo 1 2 | k3-decode -q -m m --gen 2; echo "exit $?"
sed 's/"num_hidden_layers"/"layers"/' m/config.json >c && mv c m/config.json
echo 1 2 | k3-decode -q -m m --gen 2; echo "exit $?"
rm m/config.json
echo 1 2 | k3-decode -q -m m --gen 2; echo "exit $?"
ls
