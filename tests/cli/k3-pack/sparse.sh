# SPDX-License-Identifier: Apache-2.0
# What is a hole in the shards is one in the trunk, in the complete released shape.
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
mkckpt -q --config "$K3_REAL/config.json" --layers 3 --experts 16 --sparse m
k3-index -q m >/dev/null
k3-pack -q m --json >out || exit
grep -E '"(layers|trunk_bytes|head_bytes)"' out
k3-pack check -q -m m
du -k m/k3.trunk | awk '$1 > 100000 {print "takes " $1 " KB"}'
awk -F'[:,]' '/file_bytes/ {f = $2} /hole_bytes/ {h = $2} /written_bytes/ {w = $2} /tile_bytes/ {t = $2}
    END {if (h < 0.98 * f || h + w > f) print h, w, f}' out
