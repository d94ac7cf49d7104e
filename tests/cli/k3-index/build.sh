# SPDX-License-Identifier: Apache-2.0
# the forms of build; the index appears beside the shards, or where --index says
. "${0%/*}/common"
model
cp m/k3.index first
rm m/k3.index
k3-index m 2>err && cmp m/k3.index first
sed 's/in [0-9.]* s$/in T s/' err
rm m/k3.index
K3_MODEL=m k3-index build -q && cmp m/k3.index first
k3-index -q -m m build --index "x y.index" --threads 7 && cmp "x y.index" first
k3-index build m --json | sed 's/"seconds":[0-9.e-]*/"seconds":T/'
# where no file can be put, nothing is left
: >file
run k3-index -q build -m m --index file/x.index
run k3-index -q build -m m --index no/such/x.index
run k3-index -q build -m m --index m
run k3-index -q nowhere
run k3-index -q file
ls
# an index opened from elsewhere, the folder's own being gone
rm m/k3.index
k3-index show -m m --index "x y.index" model.norm.weight | head -n 1
run k3-index show -m m --index missing.index model.norm.weight
# without any: built in memory, one line, nothing written
k3-index show -m m model.norm.weight | head -n 1
ls m | grep k3
exit 0
