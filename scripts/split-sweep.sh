#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One prompt under one memory budget, divided differently between pinned trunk and expert cache.
# usage: split-sweep.sh [OPTION VALUE]... TOTAL [SHARE...]
# TOTAL is the budget, as for k3-decode --memory, enforced as a limit. What it leaves after the rest of the plan is
# divided: each SHARE is the trunk's part in percent (default: 10 25 40 60 80 90), or TRUNK/CACHE in GB.
# Writes split.tsv and split.svg unless told otherwise by -o PREFIX; a row is called TRUNK/CACHE in GB.
# The options are those of campaign.sh, whose -h lists them.
# Exit: 1 if a row has other ids than the first or its peak exceeds the budget.
set -u -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
defaults=(-o split -t "seconds a token by trunk/cache in GB" -c "${0##*/}$(printf ' %q' "$@")")
model=${K3_MODEL:-} gen=8 prompt="3 4 5" pass=()
misuse() { echo "split-sweep: $1; see -h" >&2; exit 2; }
[ "${1:-}" != --help ] || set -- -h
while getopts m:o:n:r:p:k:x:t:c:h opt; do
    case $opt in
    h) sed -n '/^# usage/,/^# Exit/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    \?) exit 2 ;;
    *) pass+=("-$opt" "$OPTARG") ;;
    esac
    case $opt in m) model=$OPTARG ;; n) gen=$OPTARG ;; p) prompt=$OPTARG ;; esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || misuse "which TOTAL?"
[ -n "$model" ] || misuse "which model: -m MODEL or \$K3_MODEL"
total=$1
shift
[ $# -gt 0 ] || set -- 10 25 40 60 80 90
decode=k3-decode
for f in "$here/k3-decode" "$here/../bin/k3-decode"; do [ -x "$f" ] && decode=$f && break; done

plan() { "$decode" -q -m "$model" --plan --json --gen "$gen" --disk-rate 3G "$@" <<<"$prompt"; }
add() { awk -F: "$1"' { gsub(/[ "]/, "", $1) } $1 in plus { n += $2 } $1 in minus { n -= $2 } END { printf "%.0f", n }'; }
# what TOTAL leaves for both, and all the trunk there is
spare=$(plan --memory "$total") || exit
spare=$(add 'BEGIN { plus["budget_bytes"]; plus["pinnedtiles"]; plus["expertcache"]; minus["planned_bytes"] }' <<<"$spare")
all=$(plan --trunk-gb 1000000 --cache-gb 0 --mem-limit 2000T) || exit
all=$(add 'BEGIN { plus["pinnedtiles"] }' <<<"$all")
rows=()
for share in "$@"; do
    if [[ $share =~ ^[0-9.]+/[0-9.]+$ ]]; then
        trunk=${share%/*} cache=${share#*/}
    elif [[ $share =~ ^[0-9]+$ ]] && [ "$share" -le 100 ]; then
        read -r trunk cache < <(awk -v n="$spare" -v all="$all" -v p="$share" 'BEGIN {
            # a limit counts a little before the program has begun
            n -= n / 100 < 32e6 ? n / 100 : 32e6; t = n * p / 100; if (t > all) t = all
            printf "%.4g %.4g\n", t / 1e9, (n - t) / 1e9 }')
    else
        misuse "\"$share\" is neither a percentage nor TRUNK/CACHE in GB"
    fi
    rows+=("$trunk/$cache: --memory $total --trunk-gb $trunk --cache-gb $cache")
done
exec "$here/campaign.sh" "${defaults[@]}" "${pass[@]}" "${rows[@]}"
