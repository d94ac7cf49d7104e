#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a checkpoint layer by layer with k3-layer and compares it with a reference.
usage() {
    cat <<'END'
usage: conformance.sh [-m MODEL] [--ids "ID ..."] [--layers-npy FILE] [--log FILE] [--logits FILE]
                              [--tol X] [--tol-logits X] [--work DIR]

Feeds the ids to the first layer, hands each layer's output to the next, and at last to the
head. Prints a line for each layer, and exits with 1 if anything is beyond its tolerance.

  -m, --model MODEL   the checkpoint folder (default: $K3_MODEL)
  --ids "ID ..."      the prompt (default: prompt_ids of a --logits FILE.json)
  --layers-npy FILE   float32 [layers, T, hidden]: the residual stream after every layer
  --log FILE          lines "L<layer> ... max <value>": its largest absolute value after every layer
  --logits FILE       float32 .npy of all logits [T, vocab], or .json with the last row's bits
                      as 32-bit integers in "logits_bits" and the prompt in "prompt_ids"
  --tol X             layers: allowed difference, of the layer's largest value (default: 5e-5)
  --tol-logits X      logits: allowed difference (default: 4e-5)
  --work DIR          keep the array after every layer in DIR, and go on from what is there;
                      one DIR belongs to one model and one prompt
  -h, --help          print this help and exit
END
}
set -u -o pipefail

misuse() { echo "conformance.sh: $1; try --help" >&2; exit 2; }
fail() { echo "conformance.sh: $1" >&2; exit "${2:-1}"; }

model=${K3_MODEL:-} ids="" layers_npy="" log="" logits="" tol=5e-5 tol_logits=4e-5 work=""
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage; exit 0 ;;
    -m | --model | --ids | --layers-npy | --log | --logits | --tol | --tol-logits | --work)
        [ $# -ge 2 ] || misuse "$1 needs a value"
        case $1 in
        -m | --model) model=$2 ;;
        --ids) ids=$2 ;;
        --layers-npy) layers_npy=$2 ;;
        --log) log=$2 ;;
        --logits) logits=$2 ;;
        --tol) tol=$2 ;;
        --tol-logits) tol_logits=$2 ;;
        --work) work=$2 ;;
        esac
        shift 2 ;;
    *) misuse "$1: unknown argument" ;;
    esac
done
[ -n "$model" ] || misuse "no model: give -m MODEL or set K3_MODEL"
[ -n "$layers_npy$log$logits" ] || misuse "nothing to compare with: give --layers-npy, --log or --logits"
for f in "$layers_npy" "$log" "$logits"; do
    [ -z "$f" ] || [ -r "$f" ] || fail "$f: cannot read it" 3
done
bin=$(cd "$(dirname "$0")/../bin" 2>/dev/null && pwd) && PATH=$bin:$PATH
command -v k3-layer >/dev/null || fail "k3-layer is not on PATH: run make" 3

scratch=$(mktemp -d) || exit 3
trap 'rm -rf "$scratch"' EXIT
if [ -z "$work" ]; then
    work=$scratch keep=0
else
    mkdir -p "$work" || exit 3
    keep=1
fi

json_list() { tr -d '\n' <"$1" | sed "s/.*\"$2\": *\[\([^]]*\)\].*/\1/" | tr ',' '\n'; }

# The reference row of a .json as an array: decimal bit patterns to bytes.
json_to_npy() {
    local n
    json_list "$1" logits_bits >"$scratch/bits"
    n=$(grep -c . "$scratch/bits")
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($n,), }"
    printf '%b' "$(awk '{ for (i = 0; i < 4; i++) { printf "\\0%03o", $1 % 256; $1 = int($1 / 256) } }' "$scratch/bits")"
}

case $logits in
*.json) [ -n "$ids" ] || ids=$(json_list "$logits" prompt_ids | tr '\n' ' ') ;;
esac
read -ra list <<<"$ids"
ids=${list[*]}
[ -n "$ids" ] || misuse "no prompt: give --ids"

if [ -e "$work/prompt" ]; then
    [ "$(cat "$work/prompt")" = "$model: $ids" ] || fail "$work: belongs to another run, $(cat "$work/prompt")"
fi
echo "$model: $ids" >"$work/prompt"

# layer ARGS...: standard input to standard output; an error ends the run.
layer() { k3-layer -q -m "$model" "$@"; }
# value KEY: of the JSON line that diff printed
value() { sed -n "s/.*\"$1\": \([^,}]*\).*/\1/p" "$scratch/diff"; }

failed=0 compared=0
verdict() { # WITHIN: counts, and says so
    compared=$((compared + 1))
    if [ "$1" = true ]; then echo ok; else failed=$((failed + 1)); echo BEYOND; fi
}

# The running sum in FILE after LAYER against the dump and the log.
compare_layer() {
    local l=$1 x=$2 line="$1" largest want ok
    k3-layer diff --json "$x:-1" "$x:-1" >"$scratch/diff" || exit
    largest=$(value largest)
    line+=$'\t'"max $largest"
    if [ -n "$log" ]; then
        want=$(sed -n "s/^ *L$l  *.*max *\([0-9.eE+-]*\).*/\1/p" "$log" | head -n 1)
        [ -n "$want" ] || fail "$log: no line for layer $l"
        # The log has six decimals.
        ok=$(awk -v a="$largest" -v b="$want" -v t="$tol" 'BEGIN { d = a - b; if (d < 0) d = -d; print (d <= t * b + 6e-7) ? "true" : "false" }')
        verdict "$ok" >"$scratch/word"
        line+=$'\t'"log $want $(cat "$scratch/word")"
    fi
    if [ -n "$layers_npy" ]; then
        k3-layer diff --json --tol "$tol" "$x:-1" "$layers_npy:$l" >"$scratch/diff" 2>"$scratch/err"
        [ -s "$scratch/diff" ] || { cat "$scratch/err" >&2; exit 1; }
        verdict "$(value within)" >"$scratch/word"
        line+=$'\t'"differs by $(value max_rel) $(cat "$scratch/word")"
    fi
    printf '%s\n' "$line"
}

compare_logits() {
    local ref=$logits ours=$1
    case $logits in
    *.json) ref=$scratch/ref.npy && json_to_npy "$logits" >"$ref" && ours=$1:-1 ;;
    esac
    k3-layer diff --json --tol-abs "$tol_logits" "$ours" "$ref" >"$scratch/diff" 2>"$scratch/err"
    [ -s "$scratch/diff" ] || { cat "$scratch/err" >&2; exit 1; }
    verdict "$(value within)" >"$scratch/word"
    printf 'logits\tdiffer by %s %s\n' "$(value max_abs)" "$(cat "$scratch/word")"
}

layers=$(k3-index config --json -m "$model" | sed -n 's/.*"layers": *\([0-9]*\).*/\1/p' | head -n 1)
[ -n "$layers" ] || fail "$model: cannot tell how many layers it has"
x=$work/embed.npy
[ -e "$x" ] || { echo "$ids" | layer embed >"$x.new" && mv "$x.new" "$x"; } || exit
for ((l = 0; l < layers; l++)); do
    y=$work/$l.npy
    [ -e "$y" ] || { layer -l "$l" <"$x" >"$y.new" && mv "$y.new" "$y"; } || exit
    [ -n "$log$layers_npy" ] && compare_layer "$l" "$y"
    [ $keep -eq 1 ] || rm -f "$x"
    x=$y
done
if [ -n "$logits" ]; then
    layer head <"$x" >"$scratch/logits.npy" || exit
    compare_logits "$scratch/logits.npy"
fi
echo "$((compared - failed)) of $compared comparisons within their tolerance"
[ $failed -eq 0 ]
