# SPDX-License-Identifier: Apache-2.0
# A limit on file sizes is exit 3 with the file's name in every writer, and nothing is left.
. "${0%/*}/common"
model
limited() { (ulimit -f 2; "$@") >/dev/null; echo "exit $?"; }
limited k3-index build -q -m m --index x.index
limited k3-index verify -q m --write-sums
limited k3-pack -q m -o t --tile 4Ki
rm -f t.part
echo 84 257 >ids
limited k3-decode -q -m m --gen 2 --save-state s.k3s <ids
limited k3-decode -q -m m --gen 2 --trace t.k3t --save-state s.k3s <ids
rm ids
ls -A . m | grep tmp && echo "a temporary is left"
true
