#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How fast a device delivers, by size of a read and reads in flight: random direct reads by k3-index probe.
# usage: disk-sweep.sh [-o FILE] [-s SIZES] [-d DEPTHS] [-r REPEATS] [-t SECONDS] [-H on|off] [-x COMMAND] [-c TEXT] FILE
#   FILE        large and full, on the device; it is only read
#   -o FILE     the table (default: disk.tsv)
#   -s SIZES    of a read (default: 256Ki,1Mi,4Mi,16Mi,17547264; the last is an expert of the release)
#   -d DEPTHS   reads in flight (default: 1,2,4,8,16,32)
#   -r REPEATS  all sizes forth, then all back, and so on (default: 3)
#   -t SECONDS  for each measurement (default: 0.5)
#   -H on|off   read into huge pages (default: on)
#   -x COMMAND  run each size through this
#   -c TEXT     the command to name in the table (default: this one)
# Rates are bytes a second: the median over the repeats, the least and the largest. Exit: 1 if the page cache was not bypassed.
set -u -o pipefail
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)
command="${0##*/}$(printf ' %q' "$@")"
out=disk.tsv sizes=256Ki,1Mi,4Mi,16Mi,17547264 depths=1,2,4,8,16,32 repeats=3 seconds=0.5 huge=on wrap=""
misuse() { echo "disk-sweep: $1; see -h" >&2; exit 2; }
[ "${1:-}" != --help ] || set -- -h
while getopts o:s:d:r:t:H:x:c:h opt; do
    case $opt in
    o) out=$OPTARG ;;
    s) sizes=$OPTARG ;;
    d) depths=$OPTARG ;;
    r) repeats=$OPTARG ;;
    t) seconds=$OPTARG ;;
    H) huge=$OPTARG ;;
    x) wrap=$OPTARG ;;
    c) command=$OPTARG ;;
    h) sed -n '/^# usage/,/^# Rates/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || misuse "which FILE?"
[[ $repeats =~ ^[1-9][0-9]?$ ]] || misuse "-r: \"$repeats\" is none of 1 to 99"
read -ra wrap <<<"$wrap"
IFS=, read -ra sizes <<<"$sizes"
index=k3-index
for f in "$here/k3-index" "$here/../bin/k3-index"; do [ -x "$f" ] && index=$f && break; done
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

cached=0
for ((round = 0; round < repeats; round++)); do
    for ((i = 0; i < ${#sizes[@]}; i++)); do
        size=${sizes[$((round % 2 ? ${#sizes[@]} - 1 - i : i))]}
        "${wrap[@]}" "$index" probe -q --json --size "$size" --depth "$depths" --seconds "$seconds" --huge "$huge" "$1" >"$work/probe" || exit
        grep -q '"direct": *true' "$work/probe" || cached=1
        # one line each: size, depth, rate
        bytes=$(sed -n 's/.*"read_size": *\([0-9]*\).*/\1/p' "$work/probe")
        grep -o '"depth": *[0-9]*,[^}]*' "$work/probe" |
            sed "s/\"depth\": *\([0-9]*\),.*\"rate\": *\([0-9.e+]*\).*/$bytes \1 \2/" >>"$work/rates"
    done
done
{
    printf '# %s\n# %s\n# %s; %s s for each measurement\n' "$command" "$("$here/machine.sh" "$1")" "$("$index" -V)" "$seconds"
    printf 'size\tdepth\trate\tmin\tmax\n'
    sort -n -k 1,1 -k 2,2 -k 3,3g "$work/rates" | awk '
        function row() { if (n) printf "%s\t%s\t%.4g\t%.4g\t%.4g\n", size, depth, (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2, v[1], v[n]; n = 0 }
        $1 != size || $2 != depth { row() }
        { size = $1; depth = $2; v[++n] = $3 }
        END { row() }'
} >"$work/tsv"
cp "$work/tsv" "$out" || exit 3
cat "$work/tsv"
[ $cached -eq 0 ] || echo "disk-sweep: $1: read through the page cache; these are not the device's rates" >&2
exit $cached
