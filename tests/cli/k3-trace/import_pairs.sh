# SPDX-License-Identifier: Apache-2.0
# import of headerless pairs: steps by descending layer, phases and positions; --incremental
pairs() { for n in "$@"; do printf "\\$(printf %o $((n % 256)))\\$(printf %o $((n / 256)))\\0\\0"; done; }
# two layers, top-2: a step of 1 position, then the whole text again with one more, twice
{
    pairs 1 3 1 4; pairs 2 5 2 6
    pairs 1 3 1 4 1 7 1 1; pairs 2 5 2 6 2 2 2 5
    pairs 1 3 1 4 1 7 1 1 1 0 1 3; pairs 2 5 2 6 2 2 2 5 2 4 2 1
} >again.bin
s="--shape 3,1,8,2"
k3-trace import $s again.bin | k3-trace cat
k3-trace import $s -i - <again.bin | k3-trace cat
# the same positions as a run with a cache would record them, and a chunk after them
{
    pairs 1 3 1 4 1 7 1 1; pairs 2 5 2 6 2 2 2 5
    pairs 1 0 1 3; pairs 2 4 2 1
    pairs 1 1 1 2; pairs 2 3 2 2
} >once.bin
k3-trace import $s once.bin -o once.k3t
k3-trace cat once.k3t
k3-trace export once.k3t | cmp - once.bin
k3-trace import $s -i once.bin -o bad.k3t 2>&1
echo $?
[ ! -e bad.k3t ] || echo "left"
