# SPDX-License-Identifier: Apache-2.0
# Parts that a layer has not; ids that the vocabulary has not; files that are not there.
. "$(dirname "$0")/npy.bash"
export K3_MODEL=$ODD/model
try() { k3-layer -q "$@" >out.npy; echo "exit $?, $(wc -c <out.npy) bytes out"; }
{ npy '<f4' '1, 104'; floats 104; } >x.npy
try -l 0 --part moe <x.npy
try -l 0 --part router --weights w.npy <x.npy
try -l 1 --part router --weights no/folder/w.npy <x.npy
echo 332 | k3-layer -q embed | wc -c
echo 1 333 | try embed
echo 1 x | try embed
echo 1 -1 | try embed
printf '1 2\n3\n' | try embed
printf '\n\n1 2\n\n' | k3-layer -q embed >a.npy && echo 1 2 | k3-layer -q embed | cmp - a.npy
printf '1 2' | k3-layer -q embed | cmp - a.npy
try diff a.npy nowhere.npy
try diff nowhere.npy:1 a.npy
try diff a.npy:2 a.npy:1
try diff a.npy:-3 a.npy:1
try diff a.npy:-0 a.npy:1
try diff a.npy ../
echo text >text
try diff a.npy text
ls
