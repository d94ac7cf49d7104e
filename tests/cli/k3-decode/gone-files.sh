# SPDX-License-Identifier: Apache-2.0
# The reader of standard output goes away: the run stops with 0, and the files that were asked for are there as far as it came.
# Would catch a state, a trace or log-probabilities that are missing without a word.
export K3_MODEL=$TINY/model
set -o pipefail
echo 77 121 700 | k3-decode -q --gen 40 --stop-id none >whole
for o in "" "--stream-json" "--draft 4"; do
    # shellcheck disable=SC2086
    echo 77 121 700 | k3-decode -q --gen 40 --stop-id none $o --save-state s --trace t.k3t --logprobs p.tsv --logits l.npy --report r.json |
        head -c 1 >/dev/null; echo "exit ${PIPESTATUS[1]}"
    jsonq r.json status
    n=$(grep -c '^1' p.tsv)
    { grep '^1' p.tsv | cut -f3; echo | k3-decode -q --gen $((40 - n)) --stop-id none --load-state s | tr ' ' '\n'; } | cmp - <(tr ' ' '\n' <whole)
    [ "$(k3-trace cat t.k3t 2>&1 | wc -l)" -gt 10 ] || echo "no trace"
    k3-layer diff l.npy l.npy >/dev/null || echo "no logits"
    rm -f s t.k3t p.tsv l.npy r.json
done
# The reader of the trace: the ids have none then, the state is left.
echo 77 121 700 | k3-decode -q --gen 40 --stop-id none --trace - --save-state s | head -c 1 >/dev/null; echo "exit ${PIPESTATUS[1]}"
k3-decode state s >/dev/null && echo "a state"
# A full disk is no reader that went away.
[ -w /dev/full ] && echo 1 | k3-decode -q --gen 2 >/dev/full 2>/dev/null; echo "exit $?"
