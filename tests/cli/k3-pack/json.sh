# SPDX-License-Identifier: Apache-2.0
# The output as JSON is one object; what depends on the machine is left out here.
steady() { grep -v -E '"(disk_bytes|seconds)"'; }
cp "$ODD/model/"* .
k3-pack -q . --json --tile 64Ki | steady
k3-pack -q info k3.trunk --json | steady
k3-pack check -q --json -m . k3.trunk | steady
printf 'x' | dd of=k3.trunk bs=1 seek=70000 conv=notrunc status=none
printf 'x' | dd of=k3.trunk bs=1 seek=700000 conv=notrunc status=none
k3-pack check k3.trunk --json >out
echo $?
steady <out
