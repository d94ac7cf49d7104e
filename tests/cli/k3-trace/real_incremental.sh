# SPDX-License-Identifier: Apache-2.0
# the true decode steps of the released trace: detection, ceiling, LRU and Belady, then the
# decode requests alone with the cache warmed by the prompt
[ -n "${K3_REAL:-}" ] || { echo "no released data"; exit 77; }
k3-trace import "$K3_REAL/expert_trace.bin" 2>&1 >/dev/null | sed "s,$K3_REAL/,,"
k3-trace import -i "$K3_REAL/expert_trace.bin" -o t.k3t 2>/dev/null
k3-trace info t.k3t | grep -E 'positions|choices|distinct|compulsory|unique'
k3-trace sim -u -p lru,belady -s 455,911,1471,1472,1823,3647,7294 t.k3t
k3-trace sim -u -w prefill -p lru,layers,belady-bypass -s 159,432,740,979,1401,2072,2802,3531 --tsv t.k3t | cut -f 1,2,4,5,7
