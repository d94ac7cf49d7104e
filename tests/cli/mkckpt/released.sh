# SPDX-License-Identifier: Apache-2.0
# The released shape: every shard's size and every name in its shard, from the config alone.
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
mkckpt -q --config "$K3_REAL/config.json" --holes m
(cd m && stat -c '%n %s' model-*) | diff - "$K3_REAL/shard_sizes.txt" || exit 1
# NAME:SHARD, one a line
for s in m/model-*; do
    n=$(od -An -tu8 -N8 "$s")
    head -c $((n + 8)) "$s" | tail -c +9 | grep -o '"[^"]*":{"dtype"' | sed "s|\"\([^\"]*\)\".*|\1:${s#m/}|"
done | LC_ALL=C sort >have
zcat "$K3_REAL/model.safetensors.index.json.gz" | grep -o '"[^"]*": *"model-[^"]*"' |
    sed 's/"\([^"]*\)": *"\(.*\)"/\1:\2/' | LC_ALL=C sort >want
wc -l <want
cmp have want
du -sm m | awk '$1 > 200 {print "takes " $1 " MB"}'
