# SPDX-License-Identifier: Apache-2.0
# Cut, flipped or foreign: exit 1 and one line that says where.
try() { echo "$1:"; k3-pack "${@:2}"; echo "$?"; }
cp -r "$ODD/model" m
k3-pack -q m -o good --tile 64Ki
n=$(stat -c %s good)
for cut in 3 100 4095 4096 5000 65535 65536 80000 $((n - 33)) $((n - 32)) $((n - 1)); do
    head -c $cut good >t
    try "cut at $cut" check t
done
flip() { cp good t; printf '\377' | dd of=t bs=1 seek="$1" conv=notrunc status=none; }
for at in 0 8 100 4095 4096 65535 $((n - 1)); do
    flip $at
    try "byte $at" info t
done
for at in 65536 300000 $((n - 33)); do
    flip $at
    try "byte $at" check t
done
cp -r "$TINY/model" tiny && rm -f tiny/k3.index # make demo leaves one
try 'other model' check -m tiny good 2>&1
head -c 131072 /dev/zero >t
try zeros check t
: >t
try empty check t
try 'a shard' check m/model-00001-of-000009.safetensors
cp good good.part
printf 'K3TPART' | dd of=good.part bs=1 conv=notrunc status=none
try 'a part' check good.part
