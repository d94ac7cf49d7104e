# SPDX-License-Identifier: Apache-2.0
# verify: every policy at every kind of size as recorded; another size or policy is noticed
for p in lru layers lfu; do
    for s in 0 1 4 31 32 33 100 512; do
        k3-trace synth -n 40 --prompt 7 --shape 9,1,64,4 --record $p --slots $s | k3-trace verify || exit
    done
done
k3-trace synth -n 40 --prompt 7 --shape 9,1,64,4 --record layers --slots 40 -o t.k3t
k3-trace verify -p layers -s 40 t.k3t
t() { "$@" 2>&1; echo "$?"; }
t k3-trace verify -s 41 t.k3t
t k3-trace verify -p lru t.k3t
k3-trace cut -s 3- t.k3t -o cut.k3t
t k3-trace verify cut.k3t
k3-trace synth -n 2 --shape 4,1,8,2 -o none.k3t
t k3-trace verify none.k3t
