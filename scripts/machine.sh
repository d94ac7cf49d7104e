#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# This machine in one line, to stand beside what was measured on it.
# usage: machine.sh [FILE]   with FILE, also where it lies
set -u
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
isa=$(sed -n 's/^flags[^:]*: //p' /proc/cpuinfo | head -n 1 | grep -ow -e avx2 -e avx512f | paste -sd ' ')
memory=$(awk '$1 == "MemTotal:" { printf "%.1f GB", $2 * 1024 / 1e9 }' /proc/meminfo)
place=""
[ $# -eq 0 ] || place=", $(df --output=source,fstype -- "$1" | awk 'NR == 2 { print $1 " " $2 }')"
printf '%s%s, %s usable cores, %s of memory, Linux %s%s\n' "${cpu:-unknown CPU}" "${isa:+ ($isa)}" "$(nproc)" "$memory" "$(uname -r)" "$place"
