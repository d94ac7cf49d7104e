# SPDX-License-Identifier: Apache-2.0
# A prompt split over calls that carry --state gives the rows of one call, and leaves the same state. Catches a convolution
# history or latent that is not carried, or a position that is not.
data() { tail -c +129 "$1"; } # rows of a 2-D array
chain() { # STATES: every layer with its own state file
    k3-layer -q embed >x.npy
    for l in $(seq 0 "$last"); do
        k3-layer -q -l "$l" --state "$1.$l" <x.npy >y.npy && mv y.npy x.npy || exit
    done
    k3-layer -q head <x.npy
}
for m in "$TINY" "$ODD"; do
    export K3_MODEL=$m/model
    name=$(basename "$m") last=$([ "$m" = "$TINY" ] && echo 12 || echo 6)
    echo 3 1 4 1 5 9 2 6 5 3 5 >ids
    rm -f one.* two.*
    chain one <ids >one.npy
    k3-decode -q --gen 0 --logits decode.npy <ids >out.txt && cmp one.npy decode.npy || exit
    for cut in 1 3 10; do
        rm -f two.*
        cut -d ' ' -f "-$cut" ids | chain two >first.npy
        cut -d ' ' -f "$((cut + 1))-" ids | chain two >second.npy
        { data first.npy; data second.npy; } >two.data
        data one.npy | cmp - two.data || exit
        for l in $(seq 0 "$last"); do
            cmp "one.$l" "two.$l" || exit
        done
        echo "$name: $cut and $((11 - cut))"
    done
    # The attention alone carries it too.
    for l in 0 $((last - 1)) "$last"; do
        k3-layer -q embed <ids >x.npy
        k3-layer -q -l "$l" -p attn <x.npy >one.npy
        rm -f s
        for id in $(cat ids); do
            echo "$id" | k3-layer -q embed | k3-layer -q -l "$l" -p attn -s s >row.npy && data row.npy
        done >rows
        data one.npy | cmp - rows && echo "$name: attention of layer $l, token by token"
    done
done
