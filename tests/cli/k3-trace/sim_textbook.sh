# SPDX-License-Identifier: Apache-2.0
# nine policies against independent implementations of their textbook form: policies.py made the expected hits
k3-trace synth -n 60 --shape 9,1,64,4 --prompt 5 --seed 7 -o t.k3t
k3-trace sim -u -p lru,fifo,clock,slru,2q,arc,s3fifo,sieve,wtinylfu -s 1,2,5,10,31,40,100,200 --tsv t.k3t |
    awk -F '\t' 'NR > 1 {h[$2] = h[$2] " " $5; if (!seen[$2]++) size[++n] = $2} END {for (i = 1; i <= n; i++) print size[i] h[size[i]]}'
