# SPDX-License-Identifier: Apache-2.0
# Saved at any split and loaded, a run goes on as if it had not stopped: catches a
# last id that is lost or fed twice, and state that is not whole.
export K3_MODEL=$ODD/model
prompt=(1 76 9 332 0 255 128 7 7 200)
echo "${prompt[@]}" | k3-decode -q --gen 12 --stop-id none > whole
for memory in 24M 2G; do
    for k in 1 2 3 4 5 6 7 8 9; do
        echo "${prompt[@]:0:k}" | k3-decode -q --memory $memory --gen 0 --save-state s > /dev/null
        echo "${prompt[@]:k}" | k3-decode -q --memory $memory --gen 12 --stop-id none --load-state s > rest
        cmp whole rest || echo "prompt split at $k"
    done
    for k in 1 2 5 11; do
        echo "${prompt[@]}" | k3-decode -q --memory $memory --gen $k --stop-id none --save-state s > a
        echo | k3-decode -q --memory $memory --gen $((12 - k)) --stop-id none --load-state s --draft 3 > b
        echo "$(cat a) $(cat b)" | cmp whole - || echo "generation split at $k"
    done
    echo "$memory: all splits"
done
# Saved in the middle of accepted drafts, and from a state in a scratch file.
echo 7 7 7 7 7 7 7 7 7 7 7 7 7 7 | k3-decode -q --gen 20 --stop-id none > whole
for how in '--draft 6' '--spill on --scratch .'; do
    # shellcheck disable=SC2086
    echo 7 7 7 7 7 7 7 7 7 7 7 7 7 7 | k3-decode -q --gen 9 --stop-id none $how --save-state s > a
    # shellcheck disable=SC2086
    echo | k3-decode -q --gen 11 --stop-id none $how --load-state s > b
    echo "$(cat a) $(cat b)" | cmp whole - && echo "saved with $how"
done
k3-decode state s | sed -n 's/^position *//p; s/^ids *//p'
[ "$(k3-decode state --json s | jsonq - position)" = 22 ] && echo "described"
# A turn pays for its new ids only.
echo 5 6 | k3-decode -q --gen 1 --load-state s --report r.json > /dev/null
echo "embedding rows read: $(($(jsonq r.json read embedding_bytes) / 208))"
# Refused: another model's, cut, flipped; the old file stays when saving fails.
echo 1 | k3-decode -q -m "$TINY/model" --load-state s; echo "exit $?"
head -c 500 s >"cut"; echo 1 | k3-decode -q --load-state cut; echo "exit $?"
echo 1 | k3-decode -q --load-state missing; echo "exit $?"
cp s old; mkdir locked; cp s locked/s; chmod 555 locked
echo 1 | k3-decode -q --gen 1 --save-state /dev/full > /dev/null; echo "exit $?"
cmp old s && echo "kept"
printf '1 2\n3\n' | k3-decode -q --gen 2 --save-state one; echo "exit $?"
rm one; echo | k3-decode -q --gen 2 --save-state one; echo "exit $?, $(ls one 2>&1)"
