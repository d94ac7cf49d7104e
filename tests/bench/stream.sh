#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Streams a model of the released width, 4 layers of 64 experts with all their data,
# at several budgets, and compares each with the device: the rate at which k3-index
# probe reads the same file in reads of the same size, as many at once as k3-decode has or one, whichever is faster,
# before and after each run. "floor": seconds a token, divided by those of its bytes at these rates.
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
probe() { "$bin/k3-index" probe -q --json --seconds 0.7 "$@" >"$dir/probe" && "$q" "$dir/probe" depths 0 rate; }
fastest() { # DEPTH OPTION...
    { probe --depth 1 "${@:2}"; probe --depth "$1" "${@:2}"; } | sort -g | tail -n 1
}
# bytes a second of trunk and of experts, read as k3-decode reads them
device() { echo "$(fastest 8 --in-order --size 4Mi "$dir/k3.trunk") $(fastest 2 -m "$dir")"; }
# seconds, bytes and expert bytes of a steady token: the last half of the passes, from k3-decode -v
steady() {
    awk -v half="$(($1 / 2))" '
        BEGIN {unit["kB"] = 1e3; unit["MB"] = 1e6; unit["GB"] = 1e9}
        /pass [0-9]+: 1 token of/ {
            for (i = 1; i < NF; i++) {
                if ($i == "in") s[++n] = $(i + 1)
                if ($i == "read") {u = $(i + 2); sub(",", "", u); b[n] = $(i + 1) * unit[u]}
                if ($i == "hits") e[n] = ($(i + 3) - $(i + 1)) * 17547264
            }
        }
        END {for (i = n - half + 1; i <= n; i++) {t += s[i]; r += b[i]; x += e[i]}; print t / half, r / half, x / half}'
}

"$build/tests/tools/mkckpt" -q --config "$here/wide.json" --seed 1 "$dir"
"$bin/k3-index" -q "$dir"
"$bin/k3-pack" -q "$dir"
export K3_MODEL=$dir
"$bin/k3-decode" --version
grep -m 1 'model name' /proc/cpuinfo | sed 's/.*: //'
echo "4 layers, 64 experts, $repeats runs each; medians"
row() { printf '%-32s %8s %9s %9s %7s %8s %8s %6s\n' "$@"; }
row "" s/token GB/token "of them" GB/s device device floor
row "" "" "" experts "" trunk experts ""

# step NAME TOKENS OPTION...: seconds of a steady token, and how many times those of merely reading its bytes
step() {
    local name=$1 tokens=$2 i column
    shift 2
    : >"$dir/rows"
    for ((i = 0; i < repeats; i++)); do
        device >"$dir/before"
        echo 3 4 5 | "$bin/k3-decode" -v --gen "$tokens" "$@" 2>"$dir/passes" >"$dir/ids"
        { cat "$dir/before"; device; steady "$tokens" <"$dir/passes"; } |
            awk 'NR < 3 {t += $1 / 2; x += $2 / 2} NR == 3 {print $1, $2, $3, t, x, $1 / (($2 - $3) / t + $3 / x)}' >>"$dir/rows"
        cut -d" " -f1-4 "$dir/ids" >"$dir/start"
        [ -e "$dir/first" ] || cp "$dir/start" "$dir/first"
        cmp -s "$dir/start" "$dir/first" || { echo "stream.sh: $name: other ids" >&2; exit 1; }
    done
    for column in 1 2 3 4 5 6; do
        cut -d' ' -f$column "$dir/rows" | median
    done | paste -sd ' ' >"$dir/medians"
    read -r s b x t e r <"$dir/medians"
    row "$name" "$(f "%.3f" "$s")" "$(f "%.3f" "$b/1e9")" "$(f "%.3f" "$x/1e9")" "$(f "%.2f" "$b/$s/1e9")" "$(f "%.2f" "$t/1e9")" \
        "$(f "%.2f" "$e/1e9")" "$(f '%s' "$b > 1e6 ? sprintf(\"%.2f\", $r) : \"-\"")"
}
f() { awk "BEGIN {printf \"$1\", ($2)}"; }
step "256 MB" 8 --memory 256M
step "1 GB" 8 --memory 1G
step "4 GB" 8 --memory 4G
step "7.8 GB" 8 --memory 7800M
step "8 GB" 8 --memory 8G
step "trunk and head stay, no cache" 10 --memory 9G --trunk-gb 8.1 --cache-gb 0
step "everything stays" 40 --memory 12G --trunk-gb 8.1 --cache-gb 3.4
