# SPDX-License-Identifier: Apache-2.0
# rows of a mixed step: phase and sequence pick positions, not steps
cat >t.csv <<'X'
step,sequence,position,phase,layer,rank,expert
0,0,5,decode,1,0,3
0,0,5,decode,1,1,4
0,0,6,draft,1,0,5
0,0,6,draft,1,1,6
0,7,9,decode,1,0,1
0,7,9,decode,1,1,2
X
k3-trace import -f csv --shape 2,1,8,2 t.csv -o t.k3t
k3-trace cut -p draft t.k3t | k3-trace cat
k3-trace cut --sequence 7 t.k3t | k3-trace cat
k3-trace cut -p decode --sequence 0-6 t.k3t | k3-trace cat
