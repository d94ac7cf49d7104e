# SPDX-License-Identifier: Apache-2.0
# Other weights under the same headers and sizes: every file of the old ones is refused by name, also after a
# re-index; a copy, a move and another time of modification change nothing.
. "${0%/*}/common"
model
k3-index verify -q m --write-sums >/dev/null
k3-pack -q m
echo 84 257 1255 | k3-decode -q -m m --gen 3 --save-state s >ids
k3-layer embed -q -m m <<<"84 257" >rows.npy
k3-layer -q -l 0 -m m --state ls <rows.npy >out.npy
print() { k3-index build -m m --json | grep -o '"fingerprint":"[^"]*"'; }
before=$(print)
cp -r m copy
mv copy moved
touch -d 2001-02-03 moved/*.safetensors
k3-pack check -q -m moved
k3-decode -q -m moved --gen 1 --load-state s <<<"" >/dev/null && echo "the state loads"
k3-index build -q moved
k3-pack info -q -m moved >/dev/null && echo "a copy is the same"
# one bit of one matrix of layer 4
s=model-00005-of-000015.safetensors
at=$(k3-index show -m m --json model.layers.4.self_attn.o_proj.weight | grep -o '"offset":[0-9]*' | cut -d: -f2)
size=$(stat -c %s m/$s)
poke m/$s $((at + 7)) '\077'
[ "$(stat -c %s m/$s)" = "$size" ] || echo "the size changed"
echo "-- not indexed again"
run k3-decode -q -m m --gen 3 <<<"84 257 1255"
run k3-decode -q -m m --trunk none --gen 1 --load-state s <<<""
run k3-pack info -m m
run k3-index check m
echo "-- indexed again"
after=$(print)
[ "$before" != "$after" ] && echo "another fingerprint"
hide() { sed 's/[0-9a-f]\{32\}/F/g'; }
run k3-decode -q -m m --gen 3 <<<"84 257 1255" 2>&1 | hide
run k3-decode -q -m m --trunk none --gen 1 --load-state s <<<"" 2>&1 | hide
run k3-pack check -q -m m 2>&1 | hide
run k3-index verify -q m 2>&1 | hide
rm m/k3.sums
run k3-decode -q -m m --trunk none --gen 1 --load-state s <<<"" 2>&1 | hide
run k3-layer -q -l 0 -m m --state ls <rows.npy 2>&1 >/dev/null | hide
