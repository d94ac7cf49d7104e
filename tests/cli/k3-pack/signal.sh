# SPDX-License-Identifier: Apache-2.0
# A signal stops it: what is done is kept and said, or it was done already; it dies by the signal.
cp -r "$TINY/model" m
k3-pack -q m -o want --tile 4Ki
for _ in $(seq 20); do
    k3-pack -q m -o t --tile 4Ki --io-depth 1 2>err &
    pid=$!
    until [ -e t.part ] || [ -e t ]; do :; done
    kill -TERM $pid
    wait $pid 2>/dev/null
    status=$?
    case $status in
    0) cmp t want && rm t ;;
    143) [ -e t ] && echo "stopped, and there is a file"
        if [ -e t.part ] && ! grep -q -x 'k3-pack: interrupted; [0-9]* of [0-9]* tiles are kept in t.part for the next run' err; then
            cat err
        fi ;;
    *) echo "$status"; cat err ;;
    esac
done
k3-pack -q m -o t --tile 4Ki
cmp t want
