# SPDX-License-Identifier: Apache-2.0
# hist: as expert_hist.json, or tab-separated; only experts that were used
k3-trace synth zipf --skew 2 -n 20 --shape 3,1,6,2 -o t.k3t
k3-trace hist t.k3t
k3-trace hist --tsv t.k3t
# the counts are the choices
# the counts are the choices
k3-trace hist --tsv t.k3t | awk '{n += $3} END {print n == 20 * 2 * 2 ? "complete" : n}'
