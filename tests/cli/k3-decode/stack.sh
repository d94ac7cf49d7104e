# SPDX-License-Identifier: Apache-2.0
# A small stack is enough for every instruction set: the limit holds for the first thread, and others get as much.
export K3_MODEL=$TINY/model
echo 84 257 1255 7 9 11 13 15 >ids
k3-decode -q --gen 3 <ids >want || exit
for isa in scalar avx2 avx512 avx512vbmi2 neon; do
    K3_ISA=$isa k3-decode -q --gen 1 <ids >/dev/null 2>&1 || continue
    (ulimit -s 384 && K3_ISA=$isa exec k3-decode -q --gen 3 --threads 2 <ids) >got || echo "$isa: exit $?"
    cmp got want
done
echo "done"
