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
touch model.k3t
complete_it k3-decode --trace mod
complete_it k3-trace sim mod
for t in "a b"/k3-*; do
    t=${t##*/}
    "$t" --help | sed -n '/^Options:/,/^$/s/^  \(-., \|    \)--\([a-z-]*\).*/--\2/p' | sort >want
    COMP_WORDS=("$t" --) COMP_CWORD=1
    _k3
    printf '%s\n' "${COMPREPLY[@]}" | sort >have
    diff want have
    complete -p "$t" | grep -q _k3 || echo "$t: no completion"
done
bash "$scripts/completions" zsh "a b" >_k3
sed -n 1p _k3
grep -c "'--*[a-z-]*=*\[\|}'\[" _k3
grep -h -e '--memory' -e '--json\[' _k3 | head -n 3
bash "$scripts/completions" fish "a b"
echo $?
