# SPDX-License-Identifier: Apache-2.0
# Parts of layers against the reference: KDA and MLA attention, the dense MLP, shared experts, router, latent mixture.
for m in "$TINY" "$ODD"; do
    export K3_MODEL=$m/model
    for in in "$m"/expected/parts/*.attn.in.npy; do
        p=${in%.attn.in.npy} l=$(basename "$in" .attn.in.npy)
        k3-layer -q -l "$l" --part attn <"$in" | k3-layer diff --tol 1e-5 - "$p.attn.out.npy" >out || { cat out; exit 1; }
        k3-layer -q -l "$l" --part mlp <"$p.ffn.in.npy" | k3-layer diff --tol 1e-5 - "$p.mlp.out.npy" >out || { cat out; exit 1; }
        [ -e "$p.moe.out.npy" ] || { echo "$(basename "$m") $l: attn mlp"; continue; }
        k3-layer -q -l "$l" -p moe <"$p.ffn.in.npy" | k3-layer diff --tol 1e-5 - "$p.moe.out.npy" >out || { cat out; exit 1; }
        k3-layer -q -l "$l" -p router -w w.npy <"$p.ffn.in.npy" >e.npy && cmp e.npy "$p.router.out.npy" || exit
        k3-layer diff --tol 1e-5 w.npy "$p.weights.out.npy" >out || { cat out; exit 1; }
        # Token by token and in passes of two: the same bits.
        k3-layer -q -l "$l" -p router -w w2.npy --chunk 2 <"$p.ffn.in.npy" | cmp - e.npy && cmp w.npy w2.npy || exit
        k3-layer -q -l "$l" -p moe <"$p.ffn.in.npy" >a.npy
        k3-layer -q -l "$l" -p moe --chunk 1 --threads 3 <"$p.ffn.in.npy" | cmp - a.npy || exit
        echo "$(basename "$m") $l: attn mlp moe router"
    done
done
# Shared experts alone are not the mixture.
k3-layer -q -l "$l" -p mlp <"$p.ffn.in.npy" | k3-layer diff --tol 1e-5 - "$p.moe.out.npy" >out 2>&1 && echo "parts mixed up"
exit 0
