#!/usr/bin/env bash
# One prompt at several memory budgets: time, bytes and peak memory of each; every row must give the same ids.
# usage: memory-ladder.sh [-m MODEL] [-o PREFIX] [-n GEN] [-r REPEATS] [-p "ID ..."] BUDGET...
#   -m MODEL    the checkpoint (default: $K3_MODEL)      -o PREFIX   PREFIX.tsv and PREFIX.svg (default: ladder)
#   -n GEN      ids to generate (default: 8)             -r REPEATS  of each budget; medians are shown (default: 3)
#   -p IDS      the prompt (default: 3 4 5)
# Each run is under its budget as a limit where systemd-run can set one; otherwise the limit is not enforced, and its
# peak is compared with the budget all the same. Exit: 1 if a row has other ids or exceeds its budget.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
model=${K3_MODEL:-} out=ladder gen=8 repeats=3 prompt="3 4 5"
while getopts m:o:n:r:p:h opt; do
    case $opt in
    m) model=$OPTARG ;;
    o) out=$OPTARG ;;
    n) gen=$OPTARG ;;
    r) repeats=$OPTARG ;;
    p) prompt=$OPTARG ;;
    h) sed -n '/^# usage/,/^# peak/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
if [ $# -eq 0 ] || [ -z "$model" ] || ! [[ $repeats =~ ^[1-9][0-9]?$ ]]; then echo "memory-ladder: which MODEL, which budgets? see -h" >&2; exit 2; fi
decode=k3-decode
for f in "$here/k3-decode" "$here/../bin/k3-decode"; do [ -x "$f" ] && decode=$f && break; done
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
enforced=no
systemd-run -q --scope -p MemoryMax=1G true 2>/dev/null && enforced=cgroup
limited() { # BUDGET COMMAND...
    local budget=$1
    shift
    if [ $enforced = cgroup ]; then systemd-run -q --scope -p MemoryMax="$budget" -p MemorySwapMax=0 "$@"; else "$@"; fi
}
# the number after "NAME": in a report, inside the object after line SECTION if given
value() { awk -v s="\"$2\":" -v n="\"$3\":" '$1 == s || $2 == s { on = 1 } (on || s == "\"\":") && $1 == n { gsub(/,/, "", $2); print $2; exit }' "$1"; }
median() { sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

status=0
printf 'budget\tbudget_bytes\tpeak_bytes\ts_per_token\tmin\tmax\tread_bytes\tsame_ids\tlimit\n' >"$work/tsv"
for budget in "$@"; do
    : >"$work/times"
    peak=0 same=yes
    for ((i = 0; i < repeats; i++)); do
        limited "${budget%B}" "$decode" -q -m "$model" --memory "$budget" --gen "$gen" --report "$work/r" <<<"$prompt" >"$work/ids" || exit
        [ -e "$work/first" ] || cp "$work/ids" "$work/first"
        cmp -s "$work/ids" "$work/first" || same=NO
        p=$(value "$work/r" "" peak_rss_bytes)
        [ "$p" -gt "$peak" ] && peak=$p
        value "$work/r" seconds per_token >>"$work/times"
    done
    bytes=$(value "$work/r" plan budget_bytes)
    read_bytes=$(sed -n 's/^ *"\(trunk\|head\|expert\|embedding\)_bytes": \([0-9]*\).*/\2/p' "$work/r" | awk '{ n += $1 } END { printf "%.0f", n }')
    if [ "$same" = NO ] || [ "$peak" -gt "$bytes" ]; then status=1; fi
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$budget" "$bytes" "$peak" "$(median <"$work/times")" "$(sort -g "$work/times" | head -n 1)" \
        "$(sort -g "$work/times" | tail -n 1)" "$read_bytes" "$same" $enforced >>"$work/tsv"
done
cp "$work/tsv" "$out.tsv" || exit 3
cat "$work/tsv"
awk -F '\t' 'NR > 1 { n++; name[n] = $1; t[n] = $4; if ($4 > top) top = $4 }
    END {
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"320\" font-family=\"sans-serif\" font-size=\"12\">"
        print "<rect width=\"640\" height=\"320\" fill=\"white\"/><text x=\"20\" y=\"18\">seconds a token by memory</text>"
        for (i = 1; i <= n; i++) {
            w = 580 / n; h = top > 0 ? t[i] / top * 230 : 0
            printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#47a\"/>", 30 + (i - 1) * w, 280 - h, w * 0.8, h
            printf "<text x=\"%.1f\" y=\"296\">%s</text><text x=\"%.1f\" y=\"%.1f\">%.3g</text>\n", 30 + (i - 1) * w, name[i], 30 + (i - 1) * w, 275 - h, t[i]
        }
        print "</svg>"
    }' "$work/tsv" >"$out.svg" || exit 3
exit $status
