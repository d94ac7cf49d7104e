# SPDX-License-Identifier: Apache-2.0
# A signal in the middle: what was asked for is written as far as the run came, the line is ended, and the run dies by
# the signal. Going on from the state gives the ids of an undisturbed run. A second signal ends it at once.
# Would catch a state of half a pass, files that are dropped, seconds below zero in the report.
export K3_MODEL=$TINY/model
echo 77 121 700 | k3-decode -q --gen 30 --stop-id none >whole

# interrupted SIGNAL LINES OPTION ...: runs until so many -v lines about passes are there, then signals
interrupted() {
    : >err
    env --default-signal="$1" k3-decode -v --gen 30 --stop-id none --slow-reads 1000 --io-depth 1 --trunk-gb 0 --cache-gb 0 --threads 2 --report r.json "${@:3}" \
        <prompt >ids 2>err &
    local pid=$!
    until [ "$(grep -c ': pass' err)" -ge "$2" ] || ! kill -0 $pid 2>/dev/null; do sleep 0.02; done
    kill -s "$1" $pid; wait $pid 2>/dev/null
    echo "$1: exit $?, $(grep -c 'interrupted after' err), $(tail -c 1 ids | od -An -tx1 | tr -d ' '), $(jsonq r.json error)"
    grep -E '": -[0-9]' r.json
    grep -q 'computed -' err && grep computed err
}

# same: the ids so far, without those of the state that come next, and the ids that follow
same() {
    echo | k3-decode -q --gen $((30 - $(wc -w <ids))) --stop-id none --load-state s >rest
    cat ids rest | tr -s ' \n' '\n' | sed '/^$/d' | cmp - <(tr ' ' '\n' <whole)
}

echo 77 121 700 >prompt
for signal in INT TERM HUP; do
    interrupted $signal 2 --save-state s --trace t.k3t --logprobs p.tsv --logits l.npy
    n=$(wc -w <ids)
    [ "$n" -ge 1 ] && [ "$n" -lt 30 ] || echo "$n ids"
    same
    [ "$(grep -c '^1' p.tsv)" -eq "$n" ] || echo "log-probabilities of $(wc -l <p.tsv) ids"
    [ "$(k3-trace cat t.k3t 2>&1 | wc -l)" -gt 10 ] || echo "no trace"
    k3-layer diff l.npy l.npy >/dev/null || echo "no logits"
    rm -f s t.k3t p.tsv l.npy r.json
done

# In the middle of the prompt: nothing is written yet, and the rest of it waits in the state.
interrupted INT 1 --chunk 1 --save-state s
echo "$(wc -w <ids) ids; $(k3-decode state --json s | tr -d ' \n' | grep -o '"ids":3')"
same

# Nothing to keep: the pass is given up. Two lines at once: both are ended.
printf '77 121 700\n5 6\n' >prompt
interrupted INT 2
wc -l <ids
rm r.json
# A second signal kills at once, in a pass that would take minutes, and leaves nothing.
echo 1 >prompt
env --default-signal=INT k3-decode -q --gen 3 --slow-reads 9000000 --io-depth 1 --save-state s2 --trace t2 --report r2 <prompt >ids &
pid=$!
until grep -q 'SigCgt:.*[2367abef]$' /proc/$pid/status; do sleep 0.02; done
sleep 0.3; kill -s INT $pid; sleep 0.1; kill -s INT $pid; wait $pid; echo "exit $?"
rm -f err ids rest s whole; ls
