# SPDX-License-Identifier: Apache-2.0
# A prompt of 32,768 ids: the warning, memory as planned, and each chunk of 256 reads the weights once however long
# what precedes it is. Would catch activations or scores that grow with the prompt unplanned, and weights read again for
# a block of attention.
. "$MEM_COMMON"
model tiny m
awk 'BEGIN { for (i = 1; i <= 32768; i++) printf "%d%s", i * 7919 % 2000, i < 32768 ? " " : "\n" }' >prompt
for o in "--trunk-gb 0 --cache-gb 0" "--memory 1G"; do
    # shellcheck disable=SC2086
    k3-decode -m m --gen 2 --stop-id none --report r.json $o <prompt >ids 2>err || cat err
    grep -c '^k3-decode: warning: line 1 needs 32770 positions, the model was made for 4096$' err
    cat ids
    numbers r.json
    [ "$(jsonq r.json peak_rss_bytes)" -le "$planned_bytes" ] || [ -n "$(ldd "$(command -v k3-decode)" | grep -E 'lib[at]san')" ] ||
        echo "$o: peak $peak_rss_bytes, planned $planned_bytes"
    [ "$pinned_bytes" -gt 0 ] || [ "$trunk_bytes" = $((passes * 4124688)) ] || echo "$o: trunk $trunk_bytes in $passes passes"
    [ "$embedding_bytes" = $((32769 * 256)) ] || echo "$o: embedding $embedding_bytes"
    echo "$passes passes"
done
