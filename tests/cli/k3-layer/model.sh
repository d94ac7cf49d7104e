# SPDX-License-Identifier: Apache-2.0
# Where the model's index is, what is said without one, and a sequence longer than the model was made for; a NaN.
. "$(dirname "$0")/npy.bash"
cp -r "$ODD/model" m && rm -f m/k3.index
{ npy '<f4' '2, 104'; floats 208; } >x.npy
k3-layer -m m -l 0 <x.npy >a.npy
k3-index -q build -m m --index elsewhere >/dev/null
k3-layer -m m --index elsewhere -l 0 <x.npy | cmp - a.npy
k3-index -q build -m m >/dev/null
k3-layer -m m -l 0 <x.npy | cmp - a.npy
sed 's/"max_position_embeddings": [0-9]*/"max_position_embeddings": 3/' m/config.json >c && mv c m/config.json
rm m/k3.index
k3-layer -q -m m -l 0 --part attn --state s <x.npy >b.npy; echo "exit $?"
k3-layer -m m -l 0 --part attn --state s <x.npy >b.npy; echo "exit $?"
# Values that are no numbers pass through a layer and stop at the head.
{ npy '<f4' '1, 104'; printf '\0\0\xc0\x7f'; floats 103; } | k3-layer -q -m "$ODD/model" -l 0 | k3-layer -q -m "$ODD/model" head --layers 1 >out.npy; echo "exit ${PIPESTATUS[*]}"
