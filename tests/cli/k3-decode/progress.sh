# SPDX-License-Identifier: Apache-2.0
# On a terminal: chunk, layer and time left of a prompt, then passes; the line is cleared before the report.
# Would catch a count that stays at the first chunk, one past its end, and a line that stays behind.
command -v script >/dev/null || { echo "no script(1) here"; exit 77; }
seq -s' ' 1 50 >prompt
for memory in "" "--trunk-gb 0 --cache-gb 0"; do
    script -qec "k3-decode -m '$TINY/model' $memory --chunk 8 --gen 3 --stop-id none --slow-reads 5000 --io-depth 1 --threads 1 <prompt" out >/dev/null
    tr '\r' '\n' <out >lines
    grep -oE 'k3-decode: prompt, chunk [0-9]+ of 7 \([82] tokens\), layer [0-9]+ of 13, [0-9]+:[0-5][0-9] left' lines >shown
    [ -n "$memory" ] || { [ -s shown ] || cat -v out; continue; }
    # streaming, every pass takes more than a tenth of a second
    grep -oE 'chunk [0-9]+' shown | uniq | paste -sd,
    grep -c '^k3-decode: prompt' lines | cmp - <(wc -l <shown)
    # standard output is the terminal too: nothing after the first id, unless it is asked for
    grep -qE 'id [0-9]+ of 3' lines && cat -v out
    grep -qE $'^\33\\[K[0-9]' lines || cat -v out
done
