# SPDX-License-Identifier: Apache-2.0
# sim from a pipe gives what the file gives; a trace of no or one request
k3-trace synth -n 300 --shape 9,1,64,4 -o t.k3t
k3-trace sim t.k3t | cmp - <(k3-trace sim - <t.k3t)
k3-trace synth -n 0 --shape 5,1,32,4 | k3-trace sim -s 0,1,9
printf 'step,sequence,position,phase,layer,rank,expert\n0,0,0,decode,1,0,2\n' | k3-trace import -f csv --shape 2,1,4,1 | k3-trace sim -p all -s 0,1,4 --tsv | cut -f 1,2,4,5
# a reader that goes away is no error
k3-trace cat t.k3t | head -n 1 | wc -l
