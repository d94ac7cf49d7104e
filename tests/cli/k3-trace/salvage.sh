# SPDX-License-Identifier: Apache-2.0
# a run that was killed: its whole frames can be kept
k3-trace synth flat -n 2000 --shape 4,1,64,16 -o t.k3t
head -c 60000 t.k3t >cut.k3t
k3-trace cut cut.k3t -o new.k3t 2>/dev/null && echo "taken without a word"
[ ! -e new.k3t ] || echo "left"
k3-trace cut --salvage cut.k3t -o new.k3t
k3-trace cat new.k3t | cmp -n 50000 - <(k3-trace cat t.k3t) && echo "the same as far as it goes"
