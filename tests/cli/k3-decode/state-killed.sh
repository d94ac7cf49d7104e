# SPDX-License-Identifier: Apache-2.0
# Killed while it saves: the state of before stays, whole, and nothing else looks like one.
# Would catch a state file that is written in place.
export K3_MODEL=$TINY/model
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
echo 1 2 3 | k3-decode -q --gen 0 --save-state s
cp s old
# Death at each of its writes, without a chance to clean up
shim=$(command -v mkckpt) && shim=${shim%/*}/shim_io.so
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
for ((n = 0; n < 1000; n++)); do
    echo 4 5 6 7 | K3_FAULTS="write s. after=$n SIGKILL" LD_PRELOAD=$shim k3-decode -q --gen 1 --save-state s >/dev/null 2>&1
    [ $? -eq 137 ] || break
    cmp s old
done
[ $n -ge 3 ] && cmp -s s old && echo "killed at none of its writes"
cp old s
echo "$(ls | grep -c '^s$') state, read again: $(echo 9 | k3-decode -q --gen 1 --load-state s | wc -w) id"
# and at any moment
RANDOM=${K3_SEED:-4711}
echo 4 5 6 7 | k3-decode -q --gen 1 --save-state new >/dev/null
for _ in $(seq 20); do
    echo 4 5 6 7 | k3-decode -q --gen 1 --save-state s >/dev/null &
    sleep "0.0$((RANDOM % 10))"
    kill -9 $! 2>/dev/null
    wait $! 2>/dev/null
    cmp -s s old || cmp -s s new || { echo "neither the old state nor the new one"; break; }
done
