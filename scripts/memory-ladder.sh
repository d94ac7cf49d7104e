#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One prompt at several memory budgets, each enforced as a limit: every one must give the same ids.
# usage: memory-ladder.sh [OPTION VALUE]... BUDGET...
# BUDGET is as for k3-decode --memory: 256M, 24G. Writes ladder.tsv and ladder.svg unless told otherwise by
# -o PREFIX; the options are those of campaign.sh, whose -h lists them.
# Exit: 1 if a row has other ids than the first or its peak exceeds its budget.
set -u -o pipefail
here=$(cd "$(dirname "$0")" && pwd)
pass=(-o ladder -t "seconds a token by memory" -c "${0##*/}$(printf ' %q' "$@")")
[ "${1:-}" != --help ] || set -- -h
while getopts m:o:n:r:p:k:x:t:c:h opt; do
    case $opt in
    h) sed -n '/^# usage/,/^# Exit/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    \?) exit 2 ;;
    *) pass+=("-$opt" "$OPTARG") ;;
    esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || { echo "memory-ladder: which budgets? see -h" >&2; exit 2; }
rows=()
for budget in "$@"; do rows+=("$budget: --memory $budget"); done
exec "$here/campaign.sh" "${pass[@]}" "${rows[@]}"
