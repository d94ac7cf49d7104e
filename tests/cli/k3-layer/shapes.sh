# SPDX-License-Identifier: Apache-2.0
# Arrays that do not fit: exit 1, both shapes or dtypes named, nothing on stdout.
. "$(dirname "$0")/npy.bash"
export K3_MODEL=$ODD/model
try() { k3-layer -q "$@" >out.npy; echo "exit $?, $(wc -c <out.npy) bytes out"; }
floats 208 >two
{ npy '<f4' '2, 104'; cat two; } | try -l 2
{ npy '<f4' '2, 1, 104'; cat two; } | try -l 5
{ npy '<f4' '2, 1, 104'; cat two; } | try -l 0
{ npy '<f4' '2, 1, 104'; cat two; } | try head
{ npy '<f4' '2, 1, 104'; cat two; } | try head --layers 3
{ npy '<f4' '2, 1, 104'; cat two; } | try -l 0 --part attn
{ npy '<f4' '4, 52'; cat two; } | try -l 0
{ npy '<f4' '208,'; cat two; } | try -l 0
{ npy '<f4' '1, 1, 2, 104'; cat two; } | try -l 0
{ npy '<f8' '1, 104'; cat two; } | try -l 0
{ npy '<i4' '2, 104'; cat two; } | try -l 0 --part mlp
{ npy '<f4' '2, 104'; cat two; echo; } | try -l 0
{ npy '<f4' '3, 104'; cat two; } | try -l 0
{ npy '<f4' '2, 104' | head -c 100; } | try -l 0
echo 1 2 3 | try -l 0
try -l 0
# Empty arrays are arrays.
npy '<f4' '0, 104' | k3-layer -q -l 0 | k3-layer -q -l 1 >empty.npy && head -c 80 empty.npy | tail -c +11 && echo && wc -c <empty.npy
: | k3-layer -q embed | k3-layer -q -l 0 | k3-layer -q head --layers 1 | head -c 80 | tail -c +11 && echo
# Leading 1 or not: the same.
{ npy '<f4' '2, 104'; cat two; } | k3-layer -q -l 0 >a.npy
{ npy '<f4' '1, 2, 104'; cat two; } | k3-layer -q -l 0 | cmp - a.npy
