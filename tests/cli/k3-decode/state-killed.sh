# Killed while it saves: the state of before stays, whole, and nothing else looks like one.
# Would catch a state file that is written in place.
export K3_MODEL=$TINY/model
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
echo 1 2 3 | k3-decode -q --gen 0 --save-state s
cp s old
size=$(stat -c %s s)
# Death at every 16 KiB that are written, without a chance to clean up
for ((kb = 0; kb * 1024 < size; kb += 16)); do
    (ulimit -f $kb && echo 4 5 6 7 | k3-decode -q --gen 1 --save-state s >/dev/null) 2>/dev/null
    [ $? -eq 153 ] || echo "not killed at $kb KiB: $?"
    cmp s old
done
echo "$((size / 16384 + 1)) times: $(ls | grep -c '^s$') state, read again: $(echo 9 | k3-decode -q --gen 1 --load-state s | wc -w) id"
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
