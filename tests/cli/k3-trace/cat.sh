# SPDX-License-Identifier: Apache-2.0
# cat: text and JSON lines; weights and residency where they are recorded
k3-trace synth flat -n 1 --prompt 2 --shape 3,1,8,2 --record lru --slots 6 -o t.k3t
k3-trace cat t.k3t
k3-trace cat --json t.k3t
k3-trace cat - <t.k3t | cmp - <(k3-trace cat t.k3t)
