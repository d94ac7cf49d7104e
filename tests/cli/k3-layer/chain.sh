# SPDX-License-Identifier: Apache-2.0
# The chain of processes is the model: its logits are k3-decode's, bit for bit. Catches a snapshot that is lost, doubled or put
# in the wrong place on its way through an array, and rows that depend on the cut of a pass.
chain() { # LAYERS [OPTION ...]: a pipe of that many layers
    local n=$1 last
    shift
    last=$((n - 1))
    k3-layer -q embed "$@" | layers 0 "$last" "$@" | k3-layer -q head --layers "$n" "$@"
}
layers() { # FROM TO [OPTION ...]
    local l=$1 to=$2
    shift 2
    if [ "$l" -eq "$to" ]; then
        k3-layer -q -l "$l" "$@"
    else
        k3-layer -q -l "$l" "$@" | layers $((l + 1)) "$to" "$@"
    fi
}
set -o pipefail
for m in "$TINY" "$ODD"; do
    export K3_MODEL=$m/model
    name=$(basename "$m") n=$([ "$m" = "$TINY" ] && echo 13 || echo 7)
    case=$(jsonq "$m/expected/expected.json" cases | tail -n 1)
    jsonq "$m/expected/expected.json" cases "$case" prompt_ids >ids
    k3-decode -q --gen 0 --logits decode.npy <ids >out.txt || exit
    chain "$n" <ids >all.npy && cmp all.npy decode.npy && echo "$name: $n layers"
    chain "$n" --chunk 7 --threads 3 <ids >all.npy && cmp all.npy decode.npy && echo "$name: passes of 7, 3 threads"
    K3_ISA=scalar chain "$n" <ids >all.npy && cmp all.npy decode.npy && echo "$name: scalar"
    # A chain cut short: the head mixes as many snapshots as there are.
    for k in 1 2 $((n - 1)); do
        k3-decode -q --gen 0 --layers "$k" --logits decode.npy <ids >out.txt || exit
        chain "$k" <ids >all.npy && cmp all.npy decode.npy && echo "$name: the first $k"
    done
done
