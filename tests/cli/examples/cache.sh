# SPDX-License-Identifier: Apache-2.0
# from prompts to a trace to tables and a plot; nothing is made twice
. "${0%/*}/common"
make -s GEN=6 cache-study >table || exit
head -n 1 table | tr -s ' \t' ' '
cut -f 1 out/cache/sim.tsv | uniq
head -c 4 out/cache/curves.svg; echo
k3-trace verify -q out/cache/run.k3t >/dev/null && echo "the trace is the run's"
# a larger cache hits no less
awk -F '\t' '$1 == "lru" && $5 < last { print "fewer hits: " $0 } $1 == "lru" { last = $5 }' out/cache/sim.tsv
rm out/cache/ids
make -s GEN=6 cache-study >/dev/null && ls out/cache
# table and plot are of the same policies and steps
grep -o '>\(lru\|layers\|lfu\|s3fifo\|belady-bypass\)<' out/cache/curves.svg | sort | uniq | wc -l
make -s help | sed 's/ .*//'
