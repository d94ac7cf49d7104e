# SPDX-License-Identifier: Apache-2.0
# The whole way; model and file given in every form.
cp -r "$TINY/model" m
k3-index -q m >/dev/null
k3-pack m && ls m | grep trunk
k3-pack check -q m/k3.trunk && k3-pack check -q -m m && K3_MODEL=m k3-pack check -q
k3-pack info m/k3.trunk | grep -v "on disk"
k3-pack -q build -m m -o a
K3_MODEL=m k3-pack build -q -o b --io-depth 1 --threads 1 --direct off
mv m/k3.index i && k3-pack -q m --index i --output=c --io-depth 64
cmp a m/k3.trunk && cmp a b && cmp a c
# all messages
k3-pack check -v a
# nothing but errors
k3-pack -q m -o d 2>&1 && k3-pack check -q d 2>&1
