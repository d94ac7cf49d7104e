# SPDX-License-Identifier: Apache-2.0
# On a terminal the answer stays: the line of progress is cleared before the first id, and none follows where the terminal,
# or a pipe that may lead to it, has the ids; into a file it goes on, with place, pace and time left. --progress on and off.
# No line is longer than the terminal is wide. Standard input on a terminal is asked for once.
# Would catch statistics where the text was, and a line that wraps.
command -v script >/dev/null || { echo "no script(1) here"; exit 77; }
run="k3-decode -m '$TINY/model' --trunk-gb 0 --cache-gb 0 --gen 6 --stop-id none --slow-reads 5000 --io-depth 1 --threads 1"
echo 77 121 700 >prompt
# shown COMMAND: what the terminal got, a line for each rewriting
shown() { script -qec "$1" out >/dev/null </dev/null; tr '\r' '\n' <out >lines; }
for where in "" "| cat" ">ids"; do
    shown "$run <prompt $where"
    echo "$where: $(grep -c ': prompt, chunk' lines | sed 's/[1-9][0-9]*/some/') of the prompt, $(grep -cE ': id [0-9] of 6' lines | sed 's/[1-9][0-9]*/some/') of the ids"
done
grep -qE 'id [3-6] of 6, [0-9]+\.[0-9]+ s/token, 0:[0-9][0-9] left, layer [0-9]+ of 13' lines || cat -v out
for mode in on off; do
    shown "$run --progress $mode <prompt"
    echo "$mode: $(grep -cE ': prompt, chunk|: id [0-9] of 6' lines | sed 's/[1-9][0-9]*/some/')"
done
shown "stty cols 30; $run <prompt >ids"
grep -oE 'k3-decode: (prompt|id).*' lines | sed 's/\x1b.*//' | awk '{ if (length($0) > most) most = length($0) } END { print most }'
shown "stty cols 200; $run <prompt >ids"
grep -q 'layer [0-9]* of 13' lines || cat -v out
# no terminal: --progress on gives lines of their own
k3-decode -m "$TINY/model" --gen 1 --progress on <prompt 2>err >ids; grep -c $'\r' err
k3-decode --progress sometimes; echo "exit $?"
