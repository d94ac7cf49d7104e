# SPDX-License-Identifier: Apache-2.0
# An index whose places were swapped, or whose names lead elsewhere, with checksums that are right: refused.
. "${0%/*}/common"
model
cp m/k3.index whole
resum m/k3.index
cmp m/k3.index whole && echo "nothing changed: the same file"
word() { od -An -tu8 -j "$1" -N 8 whole | tr -d ' '; }
shards=$(word 88) experts=$(word 136)
try() { resum m/k3.index; run k3-decode -q -m m --gen 2 <<<"84 257"; run k3-index check m; cp whole m/k3.index; }
# two experts change places
dd if=whole of=m/k3.index bs=8 skip=$((experts / 8)) seek=$((experts / 8 + 1)) count=1 conv=notrunc status=none
dd if=whole of=m/k3.index bs=8 skip=$((experts / 8 + 1)) seek=$((experts / 8)) count=1 conv=notrunc status=none
try
# names: of another folder, without an end, empty, one that a terminal obeys
poke m/k3.index "$shards" '../m'
try
poke m/k3.index "$shards" "$(printf 'x%.0s' {1..48})"
try
poke m/k3.index "$shards" '\0'
try
poke m/k3.index "$shards" '\033[2J'
try
