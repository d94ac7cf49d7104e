#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command under a limit on its memory, with what this machine can enforce.
# usage: limit-memory.sh [-k KIND] SIZE COMMAND...
#        limit-memory.sh [-k KIND] -w
#   -k KIND   systemd  a scope of the system's or the user's systemd (cgroup v2, or v1)
#             cgroup1  a group of its own below this process's memory group
#             ulimit   data segments: heap, anonymous mappings and thread stacks
#             none     no limit
#             auto     the first of these that works (default)
#   -w        say which it would be
# SIZE is as for k3-decode --memory: 256M, 1.5G, 24Gi. The exit status is the command's; 2 misuse, 3 KIND cannot be had here.
set -u -o pipefail
kind=auto which=0
misuse() { echo "limit-memory: $1; see -h" >&2; exit 2; }
[ "${1:-}" != --help ] || set -- -h
while getopts k:wh opt; do
    case $opt in
    k) kind=$OPTARG ;;
    w) which=1 ;;
    h) sed -n '/^# usage/,/^# SIZE/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

# ---- what there is: each prints nothing and succeeds if the kind works ----
scope() { # BYTES COMMAND...: user or system, whichever manager answers
    local user=()
    [ "$(id -u)" -eq 0 ] || user=(--user)
    systemd-run "${user[@]}" --quiet --scope -p MemoryMax="$1" -p MemorySwapMax=0 -- "${@:2}"
}
# the memory group of this process where it is mounted; a container shows its own group as the root
group1() {
    local mount path
    mount=$(awk '$3 == "cgroup" && ("," $4 ",") ~ /,memory,/ { print $2; exit }' /proc/self/mounts)
    path=$(awk -F: '("," $2 ",") ~ /,memory,/ { sub(/^[^:]*:[^:]*:/, ""); print; exit }' /proc/self/cgroup 2>/dev/null)
    [ -n "$mount" ] || return 1
    [ -e "$mount$path/memory.limit_in_bytes" ] || path=""
    printf '%s\n' "${mount}${path%/}"
}
# a new group below it with that limit; prints its folder
make_group1() {
    local parent dir
    parent=$(group1) && dir=$parent/k3-limit.$$ && mkdir "$dir" 2>/dev/null || return 1
    if ! echo "$1" >"$dir/memory.limit_in_bytes" || ! [ -w "$dir/cgroup.procs" ]; then
        rmdir "$dir"
        return 1
    fi 2>/dev/null
    [ ! -e "$dir/memory.memsw.limit_in_bytes" ] || echo "$1" 2>/dev/null >"$dir/memory.memsw.limit_in_bytes"
    printf '%s\n' "$dir"
}
works() {
    local dir
    case $1 in
    systemd) scope 1000000000 true >/dev/null 2>&1 ;;
    cgroup1) dir=$(make_group1 1000000000) && rmdir "$dir" ;;
    ulimit) (ulimit -S -d 1000000) 2>/dev/null ;;
    none) ;;
    *) misuse "-k: \"$1\" is none of systemd, cgroup1, ulimit, none and auto" ;;
    esac
}
if [ "$kind" = auto ]; then
    for kind in systemd cgroup1 ulimit none; do works $kind && break; done
elif ! works "$kind"; then
    echo "limit-memory: $kind cannot be had here" >&2
    exit 3
fi
if [ $which -eq 1 ]; then
    [ $# -eq 0 ] || misuse "-w takes no command"
    echo "$kind"
    exit 0
fi
[ $# -ge 2 ] || misuse "which SIZE, which COMMAND?"
bytes=$(numfmt --from=auto -- "${1%B}" 2>/dev/null)
[[ $bytes =~ ^[1-9][0-9]*$ ]] || misuse "\"$1\" is no size"
shift

# ---- the run ----
case $kind in
systemd) scope "$bytes" "$@" ;;
none) "$@" ;;
ulimit)
    # Threads get stacks of the soft limit, all of it counted though little is used.
    ulimit -S -s 512 && ulimit -S -d $((bytes / 1024)) && exec "$@"
    ;;
cgroup1)
    group=$(make_group1 "$bytes") || { echo "limit-memory: cannot make a memory group" >&2; exit 3; }
    trap 'rmdir "$group"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    (echo "$BASHPID" >"$group/cgroup.procs" && exec "$@")
    ;;
esac
