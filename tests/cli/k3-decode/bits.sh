# SPDX-License-Identifier: Apache-2.0
# The same logit bits for every instruction set, thread count and cut of the prompt.
run() { # NAME OPTION ...
    local name=$1
    shift
    k3-decode -q --gen 3 --stop-id none --logits got.npy "$@" <ids >got || { echo "$name: exit $?"; return; }
    runs=$((runs + 1))
    if ! cmp got.npy want.npy || ! cmp got want; then echo "$name: other bits"; fi
}
available=""
for isa in scalar avx2 avx512 avx512vbmi2 neon; do
    K3_ISA=$isa k3-decode -m "$ODD/model" -q </dev/null 2>/dev/null && available="$available $isa"
done
for m in "$ODD" "$TINY"; do
    export K3_MODEL=$m/model
    jsonq "$m/expected/expected.json" cases "$([ "$m" = "$ODD" ] && echo repeat || echo fellow)" prompt_ids >ids
    K3_ISA=scalar k3-decode -q --gen 3 --stop-id none --logits want.npy --threads 1 --chunk 1000 <ids >want || exit
    runs=0
    for isa in $available; do
        export K3_ISA=$isa
        for threads in 1 2 3 5; do
            for chunk in 1 2 7 1000; do
                # Every pair of values occurs on the larger model, all triples on the smaller.
                [ "$m" = "$TINY" ] && [ $(((threads + chunk) % 3)) -ne 0 ] && continue
                run "$isa, $threads threads, chunk $chunk" --threads $threads --chunk $chunk
            done
        done
        unset K3_ISA
    done
    [ $runs -ge 4 ] && echo "$(basename "$m"): all the same"
done
