# SPDX-License-Identifier: Apache-2.0
# missing, empty, foreign, cut, flipped and joined files: exit 1 or 3, file and place named
command -v zstd >/dev/null || { echo "no zstd program"; exit 77; }
t() { "$@"; echo "$?"; }
k3-trace synth -n 3 --shape 4,1,8,2 -o t.k3t || exit
: >empty
printf 'not a trace at all' >text
printf '\1\0\0\0\5\0\0\0' >pairs
head -c 300 t.k3t >./cut
{ head -c 250 t.k3t; printf x; tail -c +252 t.k3t; } >flipped
cat t.k3t t.k3t >joined
zstd -q t.k3t -o t.zst
mkdir folder
{
    for f in missing empty text pairs cut flipped joined t.zst folder; do
        t k3-trace cat $f
    done
    t k3-trace info - <./cut
    for c in info hist sim plot verify export; do
        t k3-trace $c cut >/dev/null
    done
    t k3-trace cut -o new cut
    t k3-trace merge -o new t.k3t cut
    t k3-trace cut -o no/such/folder t.k3t
} 2>&1 | sed 's/[0-9a-f]\{16\}/SUM/g' | grep -v '^[0-9]* [0-9]* [0-9]* '
[ ! -e new ] || echo "half a trace was left"
