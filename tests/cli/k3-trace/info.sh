# SPDX-License-Identifier: Apache-2.0
# info: text, layers, JSON; one request, none
k3-trace synth flat -n 12 --prompt 3 --shape 4,1,16,3 --expert-bytes 2M --record layers --slots 9 -o t.k3t
k3-trace info -l -t 1,4,15,99 t.k3t
k3-trace info --json t.k3t
printf 'step,sequence,position,phase,layer,rank,expert\n0,0,0,decode,1,0,2\n' | k3-trace import -f csv --shape 2,1,4,1 - -o one.k3t
k3-trace info one.k3t
k3-trace synth -n 0 --shape 2,1,4,1 | k3-trace info
