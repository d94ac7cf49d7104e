# SPDX-License-Identifier: Apache-2.0
# released bytes decode to the released values, and not to those of swapped nibbles
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
. "${0%/*}/common"
mkckpt -q --config "$K3_REAL/config.json" --layers 2 --experts 16 --holes m
w=model.layers.1.block_sparse_moe.experts.0.w1
k3-index build -q m
s=m/$(k3-index ls -m m $w.weight_packed | sed 1d | cut -f 5)
python3 - "$K3_REAL/mxfp4.json" "$s" "$(offset $w.weight_packed)" "$(offset $w.weight_scale)" <<'EOF'
import json, sys
j = json.load(open(sys.argv[1]))
with open(sys.argv[2], 'r+b') as f:
    for key, at in (('packed', 3), ('scales', 4)):
        f.seek(int(sys.argv[at]))
        f.write(bytes(j[key]['data']))
EOF
k3-index cat -m m --decode $w | head -c $((128 + 64 * 3584 * 4)) >have
python3 - "$K3_REAL/mxfp4.json" <<'EOF'
import array, json, sys
j = json.load(open(sys.argv[1]))
have = array.array('f', open('have', 'rb').read()[128:])
want = array.array('f', j['expected']['data'])
swapped = array.array('f', j['expected_swapped_nibbles']['first64'])
print(len(have), have.tobytes() == want.tobytes(), have[:64].tobytes() == swapped.tobytes())
EOF
