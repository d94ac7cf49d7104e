# SPDX-License-Identifier: Apache-2.0
# sim: table, warm-up, rates, sizes in every unit; the dead zone of lru is pointed out
k3-trace synth -n 60 --prompt 5 --shape 9,1,64,4 --expert-bytes 10M -o t.k3t
k3-trace sim -d 1G,250M t.k3t
k3-trace sim -p all -s 0,1,8,80M,10%,512,9G -w prefill t.k3t
k3-trace sim -u -p lru,belady -s 31,32,64 -w 5 t.k3t
k3-trace sim -p random,lru -s 64 --seed 9 --threads 1 t.k3t | tail -n 3
