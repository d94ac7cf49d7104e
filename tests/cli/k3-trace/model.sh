# SPDX-License-Identifier: Apache-2.0
# -m: a trace of another model is refused by name, and the model's own shape and trunk are used
cp -r "$TINY/model" m && cp -r "$ODD/model" other
k3-trace synth -q -m m -n 20 --record lru --slots 48 -o t.k3t
k3-trace info -q -m m t.k3t | head -n 2
k3-trace verify -q -m m t.k3t
k3-trace sim -q -m m --budget 3M t.k3t | head -n 1
k3-trace sim -q -m m -p lru -s 48 t.k3t | tail -n 3
k3-trace export t.k3t | k3-trace import -q -m m | k3-trace info -q -m m | grep choices
k3-trace synth -n 1 -o unknown.k3t
t() { { "$@" >/dev/null; } 2>&1; echo "$?"; }
t k3-trace info -q -m other t.k3t
t k3-trace verify -q -m other t.k3t
t k3-trace sim -q -m other t.k3t
t k3-trace info -q -m m unknown.k3t
t k3-trace info -q -m missing t.k3t
t k3-trace synth -q -m m --shape 4,1,8,2
t k3-trace import -q -m m --expert-bytes 5 t.k3t
# joining and appending as well
k3-trace synth -q -m other -n 1 -o other.k3t
t k3-trace merge -o bad.k3t t.k3t other.k3t
[ ! -e bad.k3t ] || echo "left"
