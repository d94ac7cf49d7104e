# SPDX-License-Identifier: Apache-2.0
# merge: one after the other, sequences count on; another model is refused by name
k3-trace synth -n 3 --shape 4,1,8,2 --sequences 2 -o a.k3t
k3-trace synth -n 2 --shape 4,1,8,2 --seed 2 -o b.k3t
k3-trace merge a.k3t b.k3t a.k3t -o m.k3t
k3-trace cat m.k3t | awk '$5 == 1 {print $1, $2, $3}'
{ k3-trace export a.k3t; k3-trace export b.k3t; k3-trace export a.k3t; } | cmp - <(k3-trace export m.k3t)
k3-trace merge a.k3t - <b.k3t | cmp - <(k3-trace merge a.k3t b.k3t)
t() { "$@" 2>&1; echo "$?"; }
k3-trace synth -n 1 --shape 5,1,8,2 -o shape.k3t
k3-trace synth -n 1 --shape 4,1,8,2 --expert-bytes 1M -o size.k3t
k3-trace synth -n 1 --shape 4,1,8,2 --record lru --slots 2 -o residency.k3t
for f in shape size residency missing; do
    t k3-trace merge -o bad.k3t a.k3t $f.k3t
done
[ ! -e bad.k3t ] || echo "half a merge was left"
