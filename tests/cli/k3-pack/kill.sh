# SPDX-License-Identifier: Apache-2.0
# kill -9 at any moment, 50 times on each of two models: the target is whole or not there,
# and the next run goes on to the same bytes.
cp -r "$TINY/model" tiny
mkckpt -q --config "$ODD/model/config.json" --seed 9 --order shuffled made
RANDOM=${K3_SEED:-4711}
for m in tiny made; do
    k3-index -q $m >/dev/null
    k3-pack -q $m -o want --tile 4Ki
    began=$(date +%s%N)
    k3-pack -q $m -o t --tile 4Ki --io-depth 3
    us=$((($(date +%s%N) - began) / 1000 + 1000))
    rm t
    killed=0
    for i in $(seq 50); do
        # a sanitizer's search for leaks talks when it is killed
        ASAN_OPTIONS=detect_leaks=0 k3-pack -q $m -o t --tile 4Ki --io-depth 3 &
        pid=$!
        usleep=$((RANDOM * RANDOM % us))
        sleep "$(printf '%d.%06d' $((usleep / 1000000)) $((usleep % 1000000)))"
        kill -9 $pid 2>/dev/null
        wait $pid 2>/dev/null && [ ! -e t ] && echo "$m: run $i ended well without its file"
        if [ -e t ]; then
            cmp t want || echo "$m: run $i left a bad file"
            rm t
        else
            killed=$((killed + 1))
        fi
        if [ -e t.part ] && k3-pack info -q t.part >/dev/null 2>&1; then
            cmp t.part want || echo "$m: run $i left a part that looks finished"
        fi
    done
    k3-pack -q $m -o t --tile 4Ki || echo "$m: cannot go on"
    cmp t want
    ls t.part 2>/dev/null
    rm -f t want
done
