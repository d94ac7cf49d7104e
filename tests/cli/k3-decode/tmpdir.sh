# SPDX-License-Identifier: Apache-2.0
# TMPDIR= is no folder: what needs a scratch or temporary file works as if it were not set.
# Would catch a scratch file that is looked for in the folder "".
export K3_MODEL=$TINY/model
echo 77 121 700 >line
run() { k3-decode -q --gen 3 --spill on "$@" <line; }
(unset TMPDIR; run --logits -) >want
TMPDIR='' run --logits - | cmp - want
mkdir here
(TMPDIR=here run --logits -) | cmp - want
TMPDIR=here/gone run; echo "exit $?"
# the other writers of files
cp -r "$TINY/model" m
export TMPDIR=
k3-index build -q m
k3-index verify -q -m m --write-sums >/dev/null
k3-pack -q m
k3-decode -q --gen 1 --trace t.k3t <line >/dev/null
k3-trace export -f csv t.k3t >t.csv
ls m/k3.*
[ -s t.csv ] || echo "no t.csv"
