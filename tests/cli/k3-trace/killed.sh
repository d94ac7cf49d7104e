# a writer that is killed leaves no trace by that name, and its whole frames can be salvaged
k3-trace synth -n 100000000 -o t.k3t &
pid=$!
while [ ! -s t.k3t.$pid.tmp ] || [ "$(stat -c %s t.k3t.$pid.tmp)" -lt 300000 ]; do
    kill -0 $pid || break
done
kill -9 $pid
wait $pid 2>/dev/null
[ ! -e t.k3t ] || echo "half a trace has the name of a whole one"
k3-trace info t.k3t.$pid.tmp >/dev/null 2>&1 && echo "half a trace is taken for a whole one"
k3-trace cut -q --salvage t.k3t.$pid.tmp -o kept.k3t
[ "$(k3-trace info kept.k3t | awk '$1 == "steps" {print $2}')" -gt 80 ] && echo "kept"
# interrupted, it cleans up
k3-trace synth -n 100000000 -o u.k3t &
pid=$!
while [ ! -s u.k3t.$pid.tmp ]; do
    kill -0 $pid || break
done
kill -TERM $pid
wait $pid
echo $?
ls u.* 2>/dev/null
exit 0
