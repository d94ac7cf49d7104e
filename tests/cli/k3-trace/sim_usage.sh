# SPDX-License-Identifier: Apache-2.0
# every refusal of sim
t() { "$@" </dev/null; echo "$?"; }
k3-trace synth -n 2 --shape 4,1,8,2 -o t.k3t
{
    t k3-trace sim -p mru t.k3t
    t k3-trace sim -p lru,lru t.k3t
    t k3-trace sim -p lru, t.k3t
    t k3-trace sim -s big t.k3t
    t k3-trace sim -s 5,,6 t.k3t
    t k3-trace sim -s 101% t.k3t
    t k3-trace sim -w none t.k3t
    t k3-trace sim -d 0 t.k3t
    t k3-trace sim -d fast t.k3t
    t k3-trace sim -d 1,2,3,4,5,6,7,8,9 t.k3t
    t k3-trace sim --tsv --json t.k3t
    t k3-trace sim --compat --curve t.k3t
    t k3-trace sim --compat --json t.k3t
    t k3-trace sim --compat -p lru t.k3t
    t k3-trace sim --curve -s 5 t.k3t
    t k3-trace sim --budget 1G -p lru t.k3t
    t k3-trace sim --budget 1G -d 1G,2G t.k3t
    t k3-trace sim --budget 0 t.k3t
    t k3-trace sim --budget 1G t.k3t
    t k3-trace sim --trunk 1G t.k3t
    t k3-trace sim --budget 1G --trunk 1G --trunk-disk x t.k3t
    t k3-trace sim --seed -1 t.k3t
    t k3-trace sim --threads 0 t.k3t
    t k3-trace sim a b
} 2>&1
