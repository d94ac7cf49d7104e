# SPDX-License-Identifier: Apache-2.0
# the released vocabulary: long runs, the specials, the cuts that the small vectors have no room for
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
export K3_MODEL="$K3_REAL"
head -c 1000000 /dev/zero | tr '\0' a | k3-tok encode -c
head -c 1000000 /dev/zero | tr '\0' ' ' | k3-tok encode -c
head -c 1000000 /dev/zero | tr '\0' '^' | k3-tok encode -c
seq 163584 163839 | k3-tok decode | k3-tok encode -s | tr ' ' '\n' | cmp - <(seq 163584 163839)
seq 0 163839 | k3-tok decode >all; cksum <all
k3-tok encode <all | k3-tok decode | cmp - all
echo 163840 | k3-tok decode; echo $?
printf '“Hello,” 世界世世世界世界——I'\''m ChatGPT. CAN'\''T wait '\''til 2026.世界世界' | k3-tok encode
printf '}\n/// doc' | k3-tok encode -p
