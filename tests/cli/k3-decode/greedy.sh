# SPDX-License-Identifier: Apache-2.0
# Greedy ids of every case of both models, through the program.
for m in "$TINY" "$ODD"; do
    export K3_MODEL=$m/model
    for case in $(jsonq "$m/expected/expected.json" cases); do
        want=$(jsonq "$m/expected/expected.json" cases "$case" greedy_ids)
        got=$(jsonq "$m/expected/expected.json" cases "$case" prompt_ids | k3-decode -q --stop-id none --gen "$(wc -w <<<"$want")")
        [ "$got" = "$want" ] && echo "$(basename "$m") $case" || printf '%s %s:\n%s\n%s\n' "$(basename "$m")" "$case" "$want" "$got"
    done
done
