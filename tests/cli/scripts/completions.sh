# SPDX-License-Identifier: Apache-2.0
# completion for every program knows the options of its --help, its verbs, and the options of a verb
bin=$(dirname "$(command -v k3-decode)") scripts=$FIXTURES/../../scripts
ln -s "$bin" "a b"
bash "$scripts/completions" bash "a b" >k3.bash && bash -n k3.bash
. ./k3.bash
complete_it() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _k3; echo "$* -> ${COMPREPLY[*]}"; }
complete_it k3-decode --mem
complete_it /usr/bin/k3-index pr
complete_it k3-index probe --sec
complete_it k3-trace sim --warm
complete_it k3-tok ''
complete_it k3-pack ''
complete_it k3-layer d
complete_it k3-trace info --warm
echo "values:"
complete_it k3-decode --preset ''
complete_it k3-decode -p l
complete_it k3-decode --huge ''
complete_it k3-decode --huge = o
complete_it k3-decode --cache-policy la
complete_it k3-layer --part ''
complete_it k3-tok parse --only ''
complete_it k3-trace sim -p s
complete_it k3-trace sim -p lru,be
complete_it k3-trace cut --phase prefill,d
complete_it k3-trace plot -k ''
complete_it k3-trace import -f ''
complete_it k3-doctor --no
echo "files:"
touch model.k3t
complete_it k3-decode --trace mod
complete_it k3-trace sim mod
for t in "a b"/k3-* "$scripts"/k3-*; do
    "$t" --help | sed -n '/^Options:/,/^$/s/^  \(-., \|    \)--\([a-z-]*\).*/--\2/p' | sort >want
    t=${t##*/}
    COMP_WORDS=("$t" --) COMP_CWORD=1
    _k3
    printf '%s\n' "${COMPREPLY[@]}" | sort >have
    diff want have
    complete -p "$t" | grep -q _k3 || echo "$t: no completion"
done
bash "$scripts/completions" zsh "a b" >_k3
sed -n 1p _k3
[ "$(grep -c "'--*[a-z-]*=*\[\|}'\[" _k3)" -gt 150 ] || echo 'few options for zsh'
grep -h -e '--memory' -e '--json\[' _k3 | head -n 3
echo "zsh:"
grep -c "(on off)'" _k3
grep -o -e "PART:([a-z ]*)" -e "--preset=[^\`]*" -e "_values -s , LIST prefill[a-z ]*" _k3
! command -v zsh >/dev/null || zsh -n _k3
# every value that is offered for a policy is one that the simulator takes, and every one it takes is offered
k3-trace synth --tokens 3 --shape 3,1,8,2 >t.k3t
k3-trace sim -q -p all -s 4 --json t.k3t | grep -o '"policy": *"[^"]*"' | cut -d '"' -f 4 | sort -u >want
COMP_WORDS=(k3-trace sim -p "") COMP_CWORD=3
_k3
printf '%s\n' "${COMPREPLY[@]}" | grep -vx all | sort | diff want -
bash "$scripts/completions" fish "a b"
echo $?
