# SPDX-License-Identifier: Apache-2.0
# synth: the same seed gives the same choices, kinds differ, flat is flat
k3-trace synth -n 20 --seed 5 -o a.k3t && k3-trace synth -n 20 --seed 5 -o b.k3t && cmp a.k3t b.k3t
k3-trace synth -n 20 --seed 6 | cmp -s - a.k3t && echo "the seed does nothing"
for k in flat zipf py markov k3; do
    k3-trace synth $k -n 50 --shape 5,1,64,4 | k3-trace info -l | grep -E '^source|^distinct|^    [1-4]'
done
k3-trace synth markov --repeat 1 -n 50 --shape 5,1,64,4 | k3-trace info | grep -o 'no cache.*'
k3-trace synth flat -n 1 --shape 1,0,5,5 | k3-trace cat | tr ' ' '\n' | tail -n 5 | sort | tr '\n' ' '
