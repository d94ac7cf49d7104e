# SPDX-License-Identifier: Apache-2.0
# Commands that end, break the protocol, say nothing or do not listen: time at most. Each line: what it does, what is
# said of it. Afterwards no process of its group and no zombie is left.
export K3_MODEL=$ODD/model
echo 5 6 7 8 >line
k3-decode -q --gen 24 --stop-id none <line >plain
left() { ps -e -o stat=,args= | grep -E 'drafter-of-this-test|^Z.*\bsh\b.*defunct' | grep -v grep; }
try() {
    echo "$1:"
    k3-decode --gen 24 --stop-id none --memory 2G --draft 8 --draft-from ": drafter-of-this-test; $2" <line 2>err | cmp - plain
    grep warning err
}
try "ends at once" 'exit 3'
try "is killed" 'kill -9 $$'
try "cannot be found" 'drafter-that-is-not-there 2>/dev/null'
try "ends after an answer" 'read -r request; echo 1 2'
try "writes unasked" 'echo hello; cat >/dev/null'
try "writes no ids" 'read -r request; echo hello; cat >/dev/null'
try "writes ids outside the vocabulary" 'read -r request; echo 1 99999999; cat >/dev/null'
try "never stops writing" 'read -r request; yes 1'
try "writes one endless line" 'read -r request; yes 1 | tr "\\n" " "'
try "writes blanks without end" 'read -r request; tr "\\0" " " </dev/zero'
try "closes its output" 'exec >&-; exec sleep 100'
try "closes its input" 'exec <&-; exec sleep 100'
try "says nothing" 'exec sleep 100'
try "is slow" 'while read -r request; do sleep 0.3; echo 1; done'
try "answers with nothing" 'while read -r request; do echo; done'
try "answers with more than was asked for" 'while read -r request; do seq 1 400 | tr "\\n" " "; echo; done'
try "does not want to end" 'trap "" TERM; sleep 100 & sleep 100'
left

# Of the files that are open here nothing more is open in it, and it has pipes for input and output.
sh -c 'ls /proc/self/fd >usual' </dev/null
k3-decode -q --gen 4 --report r.json --trace t --logits l.npy --draft-from 'ls /proc/self/fd >open; ls -l /proc/self/fd >all; cat >/dev/null' \
    <line >ids
diff usual open || cat all

echo "a signal ends both:"
# The second line of a pipe that stays open: it waits for input.
coproc D { exec env --default-signal=INT k3-decode -q --gen 3 --draft-from ': drafter-of-this-test; exec sleep 100'; }
to=${D[1]} from=${D[0]} pid=$D_PID
echo 7 >&"$to" && read -r _ <&"$from"
until grep -q ') S' "/proc/$pid/stat"; do sleep 0.05; done
kill -s INT "$pid"
wait "$pid"; echo "exit $?"
exec {to}>&-
left

echo "has no effect with:"
for with in --score --perplexity '--gen 0' '--draft 0'; do
    # shellcheck disable=SC2086
    k3-decode $with --draft-from true <line || echo "exit $?"
done 2>&1
