# SPDX-License-Identifier: Apache-2.0
# what import refuses, with line or byte
t() { "$@" 2>&1; echo "$?"; }
pairs() { for n in "$@"; do printf "\\$(printf %o $((n % 256)))\\$(printf %o $((n / 256)))\\0\\0"; done; }
s="--shape 3,1,8,2 -o bad.k3t"
pairs 1 3 1 4 3 0 3 1 >layer.bin
pairs 0 3 0 4 >dense.bin
pairs 1 3 1 8 >expert.bin
pairs 1 3 1 4 1 5 >topk.bin
pairs 1 3 1 4 2 5 2 6 2 7 2 0 >rows.bin
{ pairs 1 3 1 4; printf abc; } >cut.bin
printf '\1\0\0\0\377\377\377\377' >negative.bin
: >empty.bin
for f in missing layer dense expert topk rows cut negative empty; do
    t k3-trace import $s $f.bin
done
k3-trace synth -n 1 --shape 3,1,8,2 -o t.k3t
t k3-trace import $s t.k3t
# csv
h=step,sequence,position,phase,layer,rank,expert
csv() { printf '%s\n' "$@" >x.csv; t k3-trace import -f csv $s x.csv; }
csv "layer,expert" 1,2
csv $h 0,0,0,decode,1,0
csv $h 0,0,0,dreaming,1,0,3
csv $h 0,0,0,decode,1,0,x
csv $h 0,0,0,decode,1,0,8
csv $h 0,0,0,decode,9,0,1
csv $h 0,0,0,decode,1,0,1 0,0,0,decode,2,0,1 0,0,0,decode,2,1,1 0,9,9,decode,2,0,1 1,0,1,decode,1,0,1 1,0,2,decode,1,0,1 1,0,1,decode,2,0,1
csv $h 0,5000000000,0,decode,1,0,1
t k3-trace import -f csv $s empty.bin
# oracleGeneral
printf '\0\0\0\0\350\3\0\0\0\0\0\0\0\0\0\0\377\377\377\377\377\377\377\377' >object.bin
t k3-trace import -f oracle $s object.bin
head -c 20 object.bin >short.bin
t k3-trace import -f oracle $s short.bin
[ ! -e bad.k3t ] || echo "left"
# csv: whole lines, in their places
whole=("0,0,0,prefill,1,0,1" "0,0,0,prefill,1,1,2" "0,0,1,prefill,1,0,3" "0,0,1,prefill,1,1,4" "0,0,0,prefill,2,0,1" "0,0,0,prefill,2,1,2" "0,0,1,prefill,2,0,3" "0,0,1,prefill,2,1,4")
changed() { # LINE NEW: the whole file with one line replaced, or without it
    local l=("${whole[@]}")
    l[$1]=${2:-}
    [ -n "${2:-}" ] || unset "l[$1]"
    csv $h "${l[@]}"
}
changed 7 0,0,1,prefill,2,0,4
changed 6 0,0,2,prefill,2,0,3
changed 6
changed 4 0,0,0,prefill,2,1,1
changed 2
changed 7 0,0,1,prefill,2,1,4,9
csv $h,weigh "${whole[@]}"
csv $h,weight "${whole[@]}"
csv $h
csv $h "${whole[@]:0:6}"
zeros=$(printf '%070d' 0)
csv $h 0,0,0,prefill,1,0,${zeros}7 0,0,0,prefill,1,1,2 # is expert 7
rm bad.k3t
printf '%s\n0,0,0,decode,1,0,1\n0,0,0,decode,1,1,2' $h >end.csv
t k3-trace import -f csv $s end.csv
printf '%s\n0,0,0,decode,1,0,1\0\n' $h >zero.csv
t k3-trace import -f csv $s zero.csv
{ printf '\357\273\277'; printf '%s\n' $h "${whole[@]}"; } >mark.csv
t k3-trace import -f csv $s mark.csv
{ printf '\377\376'; printf '%s\n' $h "${whole[@]}" | sed 's/./&\x00/g'; } >mark16.csv
t k3-trace import -f csv $s mark16.csv
# a list's item that is too long is not another, shorter one
t k3-trace sim -s "${zeros}7" t.k3t
# oracleGeneral: a next use after the end shows a cut between steps
k3-trace synth -n 2 --shape 2,1,3,2 -o o.k3t
k3-trace export -f oracle o.k3t | head -c 48 | t k3-trace import -f oracle --shape 2,1,3,2 -o bad.k3t
[ ! -e bad.k3t ] || echo "left"
