# SPDX-License-Identifier: Apache-2.0
# diff: the numbers, the place, and exit 1 beyond the tolerance, for other shapes, other dtypes and a NaN on one side only.
. "$(dirname "$0")/npy.bash"
try() { k3-layer diff "$@"; echo "exit $?"; }
one='\0\0\x80\x3f' two='\0\0\0\x40' nan='\0\0\xc0\x7f' minus_nan='\1\0\xc0\xff' inf='\0\0\x80\x7f' minus_inf='\0\0\x80\xff' zero='\0\0\0\0' minus_zero='\0\0\0\x80'
near='\1\0\x80\x3f' # 1 + 2^-23
put() { npy '<f4' '2, 1, 2'; printf "$1$2$3$4"; }
put $one $two $zero $one >a
try a a
put $one $two $minus_zero $near >b
try a b
try --tol 1e-7 a b
try --tol 1e-8 a b
try --tol-abs 2e-7 a b
try --tol-abs 1e-7 a b
try --tol 1 --tol-abs 1e-7 a b
try a:0 b:0
try a:-1 b:1
try --json a b
# NaN and infinity
put $nan $inf $zero $one >n
put $minus_nan $inf $zero $one >m
try n m
try --tol 1 a n
try --json --tol 1 n a
put $nan $minus_inf $zero $one >m
try --tol 1 n m
put $inf $two $zero $one >big # a huge value must not hide a difference
put $inf $one $zero $one >c
try --tol 0.4 big c
put $zero $zero $zero $zero >z
try --tol 1e9 a z
try --tol-abs 2 a z
# shapes and dtypes
{ npy '<f4' '4,'; printf "$one$two$zero$one"; } >flat
try a flat
{ npy '<f4' '2, 2, 1'; printf "$one$two$zero$one"; } >turned
try a turned
{ npy '<i4' '2, 1, 2'; printf "$one$two$zero$one"; } >ints
try a ints
# every dtype; integers that a double cannot tell apart
for t in '<f8 8' '<f2 2' '<i8 8' '<u8 8' '<u4 4' '<u2 2' '<i2 2' '|u1 1' '|i1 1'; do
    for v in 0 1; do { npy "${t% *}" '1,'; head -c $((${t#* } - 1)) /dev/zero; printf "\\x4$v"; } >"v$v"; done
    echo "${t% *}: $(k3-layer diff v0 v1 2>/dev/null | head -n 1)"
done
{ npy '<i8' '1,'; printf '\xff\xff\xff\xff\xff\xff\xff\x7f'; } >p
{ npy '<i8' '1,'; printf '\xfe\xff\xff\xff\xff\xff\xff\x7f'; } >q
try p q
# names that look like an item; standard input
cp a x:1
try x:1 a
try - a <a
{ cat a; echo; } >long
try a long
# single with double precision, either way round: 1 and 2 are the same numbers in both; 1 + 2^-52 is not 1
one8='\0\0\0\0\0\0\xf0\x3f' two8='\0\0\0\0\0\0\0\x40' near8='\1\0\0\0\0\0\xf0\x3f'
{ npy '<f4' '2,'; printf "$one$two"; } >single
{ npy '<f8' '2,'; printf "$one8$two8"; } >double
{ npy '<f8' '2,'; printf "$near8$two8"; } >nearly
try single double
try double single
try nearly single
try --tol 1e-15 single nearly
