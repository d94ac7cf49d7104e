# SPDX-License-Identifier: Apache-2.0
# misuse: one line, exit 2, nothing on standard output
t() { "$@" </dev/null; echo "$?"; }
k3-trace synth -n 2 --shape 4,1,8,2 -o t.k3t
{
    t k3-trace
    t k3-trace sing
    t k3-trace -q
    t k3-trace -x
    t k3-trace cat --yaml t.k3t
    t k3-trace cat t.k3t t.k3t
    t k3-trace info -t 1,x t.k3t
    t k3-trace info -t 0 t.k3t
    t k3-trace cut -s 5-2 t.k3t
    t k3-trace cut -s x t.k3t
    t k3-trace cut -l 1-y t.k3t
    t k3-trace cut -p decode,later t.k3t
    t k3-trace cut --sequence -3 t.k3t
    t k3-trace cut -o
    t k3-trace merge
    t k3-trace import -f text x
    t k3-trace import -f csv -i x
    t k3-trace import --shape 93,1,896 x
    t k3-trace import --shape 93,1,896,16,2 x
    t k3-trace import --shape 4,4,8,2 x
    t k3-trace import --shape 4,1,8,9 x
    t k3-trace import --shape 0,0,8,2 x
    t k3-trace import --shape 4,1,0,0 x
    t k3-trace import --expert-bytes 0 x
    t k3-trace import --expert-bytes many x
    t k3-trace import a b
    t k3-trace export -f parquet t.k3t
    t k3-trace plot -k pie t.k3t
    t k3-trace plot -p lru,mru t.k3t
    t k3-trace plot --threads 0 t.k3t
    t k3-trace synth round
    t k3-trace synth flat zipf
    t k3-trace synth flat --skew 2
    t k3-trace synth zipf --repeat 0.5
    t k3-trace synth --skew 2
    t k3-trace synth -n abc
    t k3-trace synth --repeat 1.5
    t k3-trace synth --discount 1
    t k3-trace synth --theta -1
    t k3-trace synth --sequences 0
    t k3-trace synth --prompt 70000
    t k3-trace synth --prompt 65536 --shape 4,1,896,17
    t k3-trace synth --record arc --slots 3
    t k3-trace synth --record lru
    t k3-trace synth --slots 3
    t k3-trace verify -p arc t.k3t
    t k3-trace verify -s many t.k3t
} 2>&1
