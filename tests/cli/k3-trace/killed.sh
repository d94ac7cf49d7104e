# SPDX-License-Identifier: Apache-2.0
# a writer that is killed leaves no trace by that name, and its whole frames can be salvaged
k3-trace synth -n 100000000 -o t.k3t &
pid=$!
until part=$(compgen -G 't.k3t.*.part') && [ "$(stat -c %s $part)" -ge 300000 ]; do
    kill -0 $pid || break
done
kill -9 $pid
wait $pid 2>/dev/null
[ ! -e t.k3t ] || echo "half a trace has the name of a whole one"
k3-trace info $part >/dev/null 2>&1 && echo "half a trace is taken for a whole one"
k3-trace cut -q --salvage $part -o kept.k3t
[ "$(k3-trace info kept.k3t | awk '$1 == "steps" {print $2}')" -gt 80 ] && echo "kept"
# the next run names what is left, and leaves it
k3-trace synth -n 1 --shape 2,1,4,2 -o t.k3t 2>&1 | sed "s/$pid/PID/"
[ -s $part ] || echo "the next run removed it"
# a run of the engine too slow to fill a frame: what it recorded until a second ago is there
echo 84 257 1255 >ids
run="k3-decode -q -m $TINY/model --gen 16 --memory 20M"
$run --trace v.k3t --slow-reads 2000 <ids >/dev/null &
pid=$!
until part=$(compgen -G 'v.k3t.*.part') && [ "$(stat -c %s $part)" -ge 300 ]; do
    kill -0 $pid || break
    sleep 0.05
done
{ kill -9 $pid; wait $pid; } 2>/dev/null
ls v.k3t 2>/dev/null
k3-trace cut --salvage $part -o kept.k3t 2>&1 | sed 's/[0-9][0-9]*/N/g'
k3-trace cat kept.k3t >kept.txt
$run --trace w.k3t <ids >/dev/null
k3-trace cat w.k3t | head -n "$(wc -l <kept.txt)" | cmp - kept.txt && [ -s kept.txt ] && echo "kept as recorded"
# interrupted, it cleans up
k3-trace synth -n 100000000 -o u.k3t &
pid=$!
until compgen -G 'u.k3t.*.part' >/dev/null; do
    kill -0 $pid || break
done
kill -TERM $pid
wait $pid
echo $?
ls u.* 2>/dev/null
exit 0
