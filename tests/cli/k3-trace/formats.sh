# SPDX-License-Identifier: Apache-2.0
# export and back: csv keeps everything but weights and residency, pairs and oracle the choices
k3-trace synth -n 6 --prompt 3 --sequences 2 --shape 4,1,12,3 -o t.k3t
k3-trace export -f csv t.k3t | head -n 4
k3-trace export -f csv t.k3t | k3-trace import -f csv --shape 4,1,12,3 | k3-trace cat | cmp - <(k3-trace cat t.k3t)
k3-trace export -f oracle t.k3t | k3-trace import -f oracle --shape 4,1,12,3 | k3-trace export | cmp - <(k3-trace export t.k3t)
# oracleGeneral: the next use is a request's number, not a distance
k3-trace synth flat -n 3 --shape 1,0,3,2 --seed 4 | k3-trace cut | tee u.k3t | k3-trace cat
k3-trace export -f oracle u.k3t | od -A d -t d4 -w24 -v
k3-trace synth -n 1 --shape 4,1,12,3 --expert-bytes 5G | k3-trace export -f oracle 2>&1
echo $?
# residency is a column of its own
k3-trace synth flat -n 2 --shape 2,1,4,2 --record lru --slots 4 | k3-trace export -f csv
