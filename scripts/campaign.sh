#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs one prompt in several ways, several times, and compares: time, bytes, peak memory, ids.
# usage: campaign.sh [-m MODEL] [-o PREFIX] [-n GEN] [-r REPEATS] [-p "ID ..."] [-k KIND] [-x COMMAND]
#                    [-t TITLE] [-c TEXT] "LABEL: OPTIONS"...
#   LABEL: OPTIONS  of k3-decode, a row; the last --memory of a row is also enforced as a limit
#   -m MODEL    the checkpoint (default: $K3_MODEL)
#   -o PREFIX   PREFIX.tsv and PREFIX.svg (default: campaign)
#   -n GEN      ids to generate (default: 8)
#   -r REPEATS  all rows forth, then all back, and so on (default: 3)
#   -p IDS      the prompt (default: 3 4 5)
#   -k KIND     how limits are enforced, see limit-memory.sh (default: auto)
#   -x COMMAND  run each through this, such as "taskset -c 0-3"
#   -t TITLE    of the plot
#   -c TEXT     the command to name in the TSV (default: this one)
# s_per_token is the median over the repeats, runs lists them in their order. Exit: 1 if a row has other ids than
# the first or takes more than its --memory.
set -u -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
command="${0##*/}$(printf ' %q' "$@")"
model=${K3_MODEL:-} out=campaign gen=8 repeats=3 prompt="3 4 5" kind=auto wrap="" title="seconds a token"
misuse() { echo "campaign: $1; see -h" >&2; exit 2; }
[ "${1:-}" != --help ] || set -- -h
while getopts m:o:n:r:p:k:x:t:c:h opt; do
    case $opt in
    m) model=$OPTARG ;;
    o) out=$OPTARG ;;
    n) gen=$OPTARG ;;
    r) repeats=$OPTARG ;;
    p) prompt=$OPTARG ;;
    k) kind=$OPTARG ;;
    x) wrap=$OPTARG ;;
    t) title=$OPTARG ;;
    c) command=$OPTARG ;;
    h) sed -n '/^# usage/,/^# the first/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ -n "$model" ] || misuse "which model: -m MODEL or \$K3_MODEL"
[ $# -gt 0 ] || misuse "what to run?"
[[ $repeats =~ ^[1-9][0-9]?$ ]] || misuse "-r: \"$repeats\" is none of 1 to 99"
for row in "$@"; do [[ $row == ?*:\ * ]] || misuse "\"$row\" is no LABEL: OPTIONS"; done
read -ra wrap <<<"$wrap"
decode=k3-decode
for f in "$here/k3-decode" "$here/../bin/k3-decode"; do [ -x "$f" ] && decode=$f && break; done
kind=$("$here/limit-memory.sh" -k "$kind" -w) || exit
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- the runs: row i leaves its times in i.times, its largest peak in i.peak, its last report in i.report ----
# the number after "NAME": in a report, inside the object SECTION if given
value() { awk -v s="\"$2\":" -v n="\"$3\":" '$1 == s { on = 1 } (on || s == "\"\":") && $1 == n { sub(/,$/, "", $2); print $2; exit }' "$1"; }
memory_of() { # OPTIONS: the value of the last --memory
    local size="" i
    for ((i = 1; i <= $#; i++)); do
        case ${!i} in
        --memory | -M) i=$((i + 1)) && size=${!i-} ;;
        --memory=*) size=${!i#*=} ;;
        esac
    done
    echo "$size"
}
run() { # I "LABEL: OPTIONS"
    local i=$1 options limited=() size peak
    read -ra options <<<"${2#*: }"
    size=$(memory_of "${options[@]}")
    [ -z "$size" ] || limited=("$here/limit-memory.sh" -k "$kind" "$size")
    "${wrap[@]}" "${limited[@]}" "$decode" -q -m "$model" --gen "$gen" "${options[@]}" --report "$work/$i.report" <<<"$prompt" >"$work/ids"
    local status=$?
    [ $status -eq 0 ] || { echo "campaign: ${2%%: *}: k3-decode ended with $status" >&2; exit $status; }
    [ -e "$work/first" ] || cp "$work/ids" "$work/first"
    cmp -s "$work/ids" "$work/first" || touch "$work/$i.differs"
    peak=$(value "$work/$i.report" "" peak_rss_bytes)
    [ "$peak" -le "$(cat "$work/$i.peak" 2>/dev/null || echo 0)" ] || echo "$peak" >"$work/$i.peak"
    [ -z "$size" ] || numfmt --from=auto -- "${size%B}" >"$work/$i.budget"
    value "$work/$i.report" seconds per_token >>"$work/$i.times"
}
rows=("$@")
for ((round = 0; round < repeats; round++)); do
    for ((i = 0; i < $#; i++)); do
        at=$((round % 2 ? $# - 1 - i : i))
        [ ! -t 2 ] || printf '\rrepeat %d of %d, row %d of %d ' $((round + 1)) "$repeats" $((i + 1)) $# >&2
        run $at "${rows[$at]}"
    done
done
[ ! -t 2 ] || printf '\r\033[K' >&2

# ---- the table ----
table() {
    local i r status=0 same budget peak read_bytes requests hits times
    printf '# %s\n# %s\n# %s, %s threads, %s; %d ids generated\n' "$command" "$("$here/machine.sh" "$model")" "$("$decode" -V)" \
        "$(value "$work/0.report" "" threads)" "$(value "$work/0.report" "" isa | tr -d '"')" "$gen"
    printf 'row\tbudget_bytes\tpeak_bytes\ts_per_token\tmin\tmax\tread_bytes\tpinned_bytes\texpert_slots\thit_percent\tsame_ids\tlimit\truns\n'
    for ((i = 0; i < ${#rows[@]}; i++)); do
        r=$work/$i.report same=yes budget=- limit=-
        [ ! -e "$work/$i.differs" ] || { same=NO; status=1; }
        peak=$(cat "$work/$i.peak")
        if [ -e "$work/$i.budget" ]; then
            budget=$(cat "$work/$i.budget") limit=$kind
            [ "$peak" -le "$budget" ] || status=1
        fi
        read_bytes=$(sed -n 's/^ *"\(trunk\|head\|expert\|embedding\)_bytes": \([0-9]*\).*/\2/p' "$r" | awk '{ n += $1 } END { printf "%.0f", n }')
        requests=$(value "$r" read expert_requests) hits=$(value "$r" read expert_hits)
        times=$(sort -g "$work/$i.times" | awk '{ v[NR] = $1 } END { printf "%.4g\t%.4g\t%.4g", (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[1], v[NR] }')
        printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "${rows[$i]%%: *}" "$budget" "$peak" "$times" "$read_bytes" \
            "$(value "$r" plan pinned_bytes)" "$(value "$r" plan expert_slots)" \
            "$(awk -v h="$hits" -v n="$requests" 'BEGIN { printf "%.1f", (n ? 100 * h / n : 0) }')" "$same" "$limit" \
            "$(awk '{ printf "%s%.4g", (NR > 1 ? "," : ""), $1 }' "$work/$i.times")"
    done
    return $status
}
# bars of the medians with the spread as a line
plot() {
    awk -F '\t' -v title="$title" '
        function text(s) { gsub(/&/, "\\&amp;", s); gsub(/</, "\\&lt;", s); return s }
        /^#/ || $1 == "row" { next }
        { n++; name[n] = $1; t[n] = $4; low[n] = $5; high[n] = $6; if ($6 > top) top = $6 }
        END {
            print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"340\" font-family=\"sans-serif\" font-size=\"12\">"
            print "<rect width=\"720\" height=\"340\" fill=\"white\"/><text x=\"20\" y=\"20\" font-size=\"14\">" text(title) "</text>"
            scale = top > 0 ? 240 / top : 0
            for (i = 1; i <= n; i++) {
                w = 680 / n; x = 20 + (i - 1) * w; m = x + w * 0.4; y = 300 - t[i] * scale
                printf "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#8ab\"/>", x, y, w * 0.8, 300 - y
                printf "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#234\" stroke-width=\"2\"/>", m, 300 - low[i] * scale, 300 - high[i] * scale
                printf "<text x=\"%.1f\" y=\"318\" text-anchor=\"middle\">%s</text>", m, text(name[i])
                printf "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%.3g</text>\n", m, 300 - high[i] * scale - 6, t[i]
            }
            print "</svg>"
        }' "$1"
}
status=0
table >"$work/tsv" || status=1
plot "$work/tsv" >"$work/svg" && cp "$work/tsv" "$out.tsv" && cp "$work/svg" "$out.svg" || exit 3
cat "$work/tsv"
exit $status
