# SPDX-License-Identifier: Apache-2.0
# Standard output that cannot be written: exit 3; that nobody reads: exit 0.
cp "$ODD/model/"* .
k3-pack -q . -o t
k3-pack info t >/dev/full
echo $?
k3-pack -q . -o t --json >/dev/full
echo $?
k3-pack check -q -m . t
k3-pack info t >&-
echo $?
k3-pack info t --json | true
echo "${PIPESTATUS[0]}"
