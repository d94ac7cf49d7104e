# SPDX-License-Identifier: Apache-2.0
# On a terminal, jobs that read much say how much, how fast and how long yet; the line is cleared in the end, and what is
# asked for is not in it. Would catch a job without it, and statistics that stay on the screen.
command -v script >/dev/null || { echo "no script(1) here"; exit 77; }
cp -r "$TINY/model" m
k3-index -q m >/dev/null
k3-trace synth -q -n 20 --shape 4,1,12,3 -o t.k3t
# try NAME COMMAND: with standard output in a file and the terminal on standard error
try() {
    script -qec "$2 >out" log >/dev/null </dev/null
    tr '\r' '\n' <log >lines
    echo "$1: $(grep -cE "^$1: [a-z]+ [0-9.]+ k?M?B of [0-9.]+ k?M?B \([0-9]+ %\), .*B/s, [0-9]+:[0-9][0-9] left" lines | sed 's/[1-9][0-9]*/some/')"
    grep -c 'B/s, ' out
    grep -v '^Script' lines | tail -n 1 | grep 'left'
}
try k3-index 'k3-index verify -m m'
try k3-index 'k3-index verify -m m --write-sums'
try k3-layer 'k3-layer quant-error -m m'
try k3-trace 'k3-trace sim -p lru,lfu -s 3,6 t.k3t'
# headers are quickly read: only a folder on slow storage takes seconds; here its first read does
shim=$(command -v mkckpt) && shim=${shim%/*}/shim_io.so
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
script -qec "K3_FAULTS='read .safetensors times=1 sleep=2100' LD_PRELOAD=$shim k3-index build -m m --threads 1" log >/dev/null </dev/null
tr '\r' '\n' <log >lines
grep -cE '^k3-index: 1 of 15 shards read, 0\.[0-9]/s, 0:[0-9][0-9] left' lines
grep -v '^Script' lines | tail -n 1 | grep 'left'
# not where the trace is a pipe: then steps are counted
script -qec "cat t.k3t | k3-trace sim -p lru -s 3 - >out" log >/dev/null </dev/null
tr '\r' '\n' <log | grep -cE '^k3-trace: step [0-9]+, [0-9]+/s' | sed 's/[1-9][0-9]*/some/'
true
