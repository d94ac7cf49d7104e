# SPDX-License-Identifier: Apache-2.0
# Layers spread over shards in odd order pack to the same tiles as those in released order.
mkckpt -q --config "$ODD/model/config.json" --seed 5 a
mkckpt -q --config "$ODD/model/config.json" --seed 5 --order shuffled b
for tile in 4Ki 64Ki 16Mi; do
    k3-pack -q a -o a.trunk --tile $tile
    k3-pack -q b -o b.trunk --tile $tile
    k3-pack check -q a.trunk && k3-pack check -q -m b b.trunk
    cmp a.trunk b.trunk >/dev/null && echo "the fingerprint is not in the file"
    n=$(stat -c %s a.trunk)
    cmp <(tail -c +4097 a.trunk | head -c $((n - 4096 - 32))) <(tail -c +4097 b.trunk | head -c $((n - 4096 - 32)))
    k3-pack check -q -m a b.trunk 2>/dev/null
    echo $?
done
