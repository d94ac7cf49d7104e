# SPDX-License-Identifier: Apache-2.0
# the released trace in the origin engine's layout, its published figures in it
[ -n "${K3_REAL:-}" ] || { echo "no released data"; exit 77; }
k3-trace import -q "$K3_REAL/expert_trace.bin" -o t.k3t
k3-trace sim --compat t.k3t
k3-trace export t.k3t | cmp - "$K3_REAL/expert_trace.bin"
k3-trace hist t.k3t | head -c 34; echo
k3-trace hist --tsv t.k3t | awk 'NR > 1 {n += $3} END {print NR - 1, n}'
