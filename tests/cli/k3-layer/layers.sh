# SPDX-License-Identifier: Apache-2.0
# Every layer of both models against the float64 reference, on every case that has arrays: within 5e-5 of the layer's largest value.
# The negative check at the end: the comparison can fail.
for m in "$TINY" "$ODD"; do
    export K3_MODEL=$m/model
    for want in "$m"/expected/*.layers.npy; do
        case=$(basename "$want" .layers.npy)
        for key in prompt_ids greedy_ids; do
            jsonq "$m/expected/expected.json" cases "$case" $key
        done | tr '\n' ' ' >ids
        k3-layer -q embed <ids >x.npy || exit
        l=0
        while k3-layer diff "$want:$l" "$want:$l" >/dev/null 2>&1; do
            k3-layer -q -l $l <x.npy >y.npy && mv y.npy x.npy && k3-layer diff --tol 5e-5 x.npy:-1 "$want:$l" >out || { cat out; exit 1; }
            l=$((l + 1))
        done
        echo "$(basename "$m") $case: $l layers"
    done
done
k3-layer diff --tol 5e-5 x.npy:-1 "$want:0" >out 2>&1 && echo "two different layers compare equal"
exit 0
