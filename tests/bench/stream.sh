#!/usr/bin/env bash
# Streams a model of the released width, 4 layers of 64 experts with all their data,
# at several budgets, and compares each with the device: the rate at which k3-index
# probe reads pieces of the same size at the same depth, before and after each run.
# usage: tests/bench/stream.sh BUILD BIN [REPEATS]
# Takes 23 GB of $TMPDIR (default: /var/tmp) and some minutes; removes it all.
set -euo pipefail
build=$(realpath "${1:?BUILD}") bin=$(realpath "${2:?BIN}") repeats=${3:-3}
here=$(cd "$(dirname "$0")" && pwd)
q=$build/tests/tools/jsonq
dir=$(mktemp -d "${TMPDIR:-/var/tmp}/k3-stream.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
free=$(df --output=avail -B1 "$dir" | tail -n 1)
[ "$free" -ge 24000000000 ] || { echo "stream.sh: $dir has $free bytes free, 24 GB are needed" >&2; exit 1; }

median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
# bytes a second of trunk reads: the size of a tile, as many in flight as k3-decode has
device() {
    "$bin/k3-index" probe -q --json --size 4Mi --depth 4 --seconds 1 "$dir/k3.trunk" >"$dir/probe"
    "$q" "$dir/probe" depths 0 rate
}

"$build/tests/tools/mkckpt" -q --config "$here/wide.json" --seed 1 "$dir"
"$bin/k3-index" -q "$dir"
"$bin/k3-pack" -q "$dir"
export K3_MODEL=$dir
"$bin/k3-decode" --version
grep -m 1 'model name' /proc/cpuinfo | sed 's/.*: //'
echo "4 layers, 64 experts, $repeats runs each; medians"
printf '%-34s %9s %9s %9s %9s %9s %7s\n' "" "s/token" "GB/token" "GB/s" "device" "floor s" "ratio"

# step NAME OPTION...: seconds of a steady token against its bytes at the device's rate
step() {
    local name=$1 i s b d
    shift
    : >"$dir/rows"
    for ((i = 0; i < repeats; i++)); do
        d=$(device)
        echo 3 4 5 | "$bin/k3-decode" -q --gen 6 --report "$dir/report" "$@" >"$dir/ids"
        d=$(printf '%s\n' "$d" "$(device)" | awk '{d += $1 / 2} END {printf "%.0f", d}')
        s=$("$q" "$dir/report" seconds per_token) b=$("$q" "$dir/report" read per_token_bytes)
        echo "$s $b $d" | awk '{print $1, $2, $3, $1 * $3 / $2}' >>"$dir/rows"
        [ -e "$dir/first" ] || mv "$dir/ids" "$dir/first"
        [ ! -e "$dir/ids" ] || cmp -s "$dir/ids" "$dir/first" || { echo "stream.sh: $name: other ids" >&2; exit 1; }
    done
    s=$(cut -d' ' -f1 "$dir/rows" | median) b=$(cut -d' ' -f2 "$dir/rows" | median)
    awk -v n="$name" -v s="$s" -v b="$b" -v d="$(cut -d' ' -f3 "$dir/rows" | median)" -v r="$(cut -d' ' -f4 "$dir/rows" | median)" \
        'BEGIN {printf "%-34s %9.3f %9.2f %9.2f %9.2f %9.3f %7s\n", n, s, b / 1e9, b / s / 1e9, d / 1e9, b / d, (b > 1e6 ? sprintf("%.2f", r) : "-")}'
}
step "256 MB" --memory 256M
step "1 GB" --memory 1G
step "4 GB" --memory 4G
step "7.8 GB" --memory 7800M
step "8 GB" --memory 8G
step "trunk and head stay, no cache" --memory 9G --trunk-gb 8.1 --cache-gb 0
step "everything stays" --memory 12G --trunk-gb 8.1 --cache-gb 3.4
