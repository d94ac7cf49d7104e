# SPDX-License-Identifier: Apache-2.0
# what the engine's policies give on the released trace's decode steps, as it asks for them
[ -n "${K3_REAL:-}" ] || { echo "no released data"; exit 77; }
k3-trace import -iq "$K3_REAL/expert_trace.bin" | k3-trace sim -w prefill -s 159,432,740,979,1401,2072,2802,3531
