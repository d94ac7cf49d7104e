# SPDX-License-Identifier: Apache-2.0
# What does not fit is refused before work starts, with what is needed, what there is and up to three changes, and
# each of them, added to the command line, makes the plan fit and the run go through. The plan is printed all the same.
# Would catch advice that was not tried: sizes that still do not fit, and options that count for nothing.
. "${0%/*}/mem-common"

# changes MESSAGE: one a line
changes() {
    grep -qE '^k3-decode: not enough memory: [0-9.]+ .?B are needed, [0-9.]+ .?B may be used; what would help: ' "$1" || cat "$1" >&2
    sed 's/.*what would help: //; s/, or /\n/g' "$1"
}

# refused OPTION ...: the plan and the run, then both once more with each change that they suggest
refused() {
    local change names=""
    k3-decode -m m --plan --disk-rate 5G "$@" >plan.txt 2>err
    echo "plan: exit $?"
    grep -q '^memory: .* planned, .* may be used$' plan.txt || echo "no plan is printed for $*"
    for change in $(changes err | tr ' ' =); do
        [ "$change" = more=memory ] || k3-decode -m m --plan --disk-rate 5G "$@" "$change" >plan.txt || echo "no plan fits with: $* $change"
    done
    k3-decode -q -m m "$@" <prompts 2>err
    echo "run: exit $?"
    for change in $(changes err | tr ' ' =); do
        names="$names ${change%%=*}"
        [ "$change" = more=memory ] || k3-decode -q -m m "$@" "$change" <prompts >got || echo "refused with: $* $change"
    done
    echo "suggested:$names"
}

model tiny m
echo '77 121 700' >prompts
set -- --threads 2 --gen 2
floor=$(planned -m m "$@" --context 64 --memory 1)
echo "== a little"
refused "$@" --context 64 --memory $((floor - 4096))
echo "== too long"
# it ends with its first id, 1015
refused --threads 2 --stop-id 1015 --gen 2000 --memory $((floor + 20000))
echo "== context"
refused "$@" --context 4000 --memory $((floor + 20000))
echo "== chunk"
refused "$@" --context 64 --chunk 64 --memory $((floor + 20000))
echo "== ring"
refused "$@" --context 64 --ring 8 --tile 64Ki --memory $((floor + 20000))
echo "== tile"
refused "$@" --context 64 --tile 1Mi --memory $((floor + 20000))
echo "== state in memory"
refused "$@" --context 64 --spill off --memory $((floor + 1000))
echo "== readers"
refused "$@" --context 64 --io-depth 64 --memory $((floor + 20000))
echo "== threads"
refused --gen 2 --context 64 --threads 64 --memory $((floor + 20000))
echo "== sizes"
refused "$@" --memory 20M --trunk-gb 4M --cache-gb 6M
echo "== one size"
refused "$@" --memory 16M --cache-gb 6M
echo "== preset and machine"
refused "$@" --preset laptop --mem-limit 20M
echo "== machine"
refused "$@" --memory 30M --mem-limit 9M
echo "== packed"
k3-pack -q m --tile 16Mi
refused "$@" --context 64 --memory $((floor + 20000))
