# SPDX-License-Identifier: Apache-2.0
"""Reference results for parts of a layer: make_parts.py CKPT OUT TOKENS LAYER ...

The input of every part is what the layer's norms give for the ids 1, 2, ... TOKENS, rounded to float32; the
results are computed from the rounded values. Writes OUT/LAYER.attn.in.npy and .attn.out.npy, OUT/LAYER.ffn.in.npy,
.mlp.out.npy (the dense MLP, or the shared experts), and for MoE layers .moe.out.npy, .router.out.npy (int32 picks in
descending order of biased score) and .weights.out.npy. Refuses an input on which two scores that matter lie closer than 1e-4.
"""
import os
import sys

import numpy as np

from k3_ref import Model, sigmoid

ck, out, tokens, layers = sys.argv[1], sys.argv[2], int(sys.argv[3]), [int(a) for a in sys.argv[4:]]
os.makedirs(out, exist_ok=True)
m = Model(ck)
seen = {}


def spy(name):
    inner = getattr(m, name)

    def call(L, x, *rest):
        seen.setdefault((L, "attn" if name in ("kda", "mla") else "ffn"), x)
        return inner(L, x, *rest)

    setattr(m, name, call)


for n in ("kda", "mla", "mlp", "moe"):
    spy(n)
m.run(np.arange(1, tokens + 1))


def save(L, kind, a, dtype=np.float32):
    np.save(os.path.join(out, "%d.%s.npy" % (L, kind)), a.astype(dtype))


def gap(L, x):
    s = sigmoid(x @ m.w(L, "block_sparse_moe.gate.weight").T) + m.w(L, "block_sparse_moe.gate.e_score_correction_bias")
    return np.diff(-np.sort(-s, axis=1)[:, :m.c["num_experts_per_token"] + 1]).max()


for L in layers:
    x, y = (seen[L, k].astype(np.float32) for k in ("attn", "ffn"))
    dense = L < m.c["first_k_dense_replace"]
    save(L, "attn.in", x)
    save(L, "ffn.in", y)
    x, y = x.astype(np.float64), y.astype(np.float64)
    save(L, "attn.out", m.mla(L, x) if L + 1 in m.full else m.kda(L, x))
    save(L, "mlp.out", m.mlp(L, y, "mlp." if dense else "block_sparse_moe.shared_experts."))
    if dense:
        continue
    if gap(L, y) > -1e-4:
        sys.exit("layer %d: two scores are too close to call" % L)
    idx, wt = m.route(L, y)
    save(L, "router.out", idx, np.int32)
    save(L, "weights.out", wt)
    save(L, "moe.out", m.moe(L, y, {}))
