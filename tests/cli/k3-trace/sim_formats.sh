# SPDX-License-Identifier: Apache-2.0
# sim --tsv, --json, --curve: the same numbers in each
k3-trace synth -n 40 --shape 5,1,32,4 --expert-bytes 1M -o t.k3t
k3-trace sim -p lru,lfu -s 4,16,40 -d 1M --tsv t.k3t
k3-trace sim -p lru,lfu -s 4,16,40 -d 1M --json t.k3t
k3-trace sim --curve t.k3t | head -n 4
k3-trace sim --curve --json t.k3t | sed -n '1,3p;$p'
k3-trace sim --curve t.k3t | tail -n 1
[ "$(k3-trace sim --curve t.k3t | awk '$1 <= 40 {h = $2} END {print h}')" = \
  "$(k3-trace sim -p lru -s 40 --tsv t.k3t | awk -F '\t' 'NR == 2 {print $5}')" ] || echo "curve and size differ"
