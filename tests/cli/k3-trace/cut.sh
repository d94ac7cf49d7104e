# SPDX-License-Identifier: Apache-2.0
# cut: what is inside every range, nothing else; the parts of a trace are the trace
k3-trace synth -n 30 --prompt 4 --sequences 3 --shape 5,1,20,3 -o t.k3t
k3-trace cut -s 31-32 -l 3-4 t.k3t | k3-trace cat | cut -d ' ' -f 1-5
k3-trace cut -p prefill --sequence 1- t.k3t | k3-trace cat | awk '{print $2, $3, $4}' | sort | uniq -c
k3-trace cut -s 0-40 t.k3t -o a.k3t
k3-trace cut -s 41- t.k3t -o b.k3t
{ k3-trace export a.k3t; k3-trace export b.k3t; } | cmp - <(k3-trace export t.k3t)
k3-trace cut t.k3t | k3-trace cat | cmp - <(k3-trace cat t.k3t)
k3-trace cut -s 41-50 - <t.k3t | cmp - <(k3-trace cut -s 41-50 t.k3t)
# nothing inside: a trace without steps
k3-trace cut -s 1000- t.k3t | k3-trace cat
