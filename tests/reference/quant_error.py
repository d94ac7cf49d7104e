# SPDX-License-Identifier: Apache-2.0
"""What int8 and int4 with one scale a row are off by, in float64: the TSV of `k3-layer quant-error [--rows N]`.
usage: quant_error.py MODEL [ROWS]"""
import sys

import numpy as np

from k3_ref import Checkpoint

KIND = [("self_attn", None), ("block_sparse_moe", "moe"), (".mlp.", "dense"), ("lm_head", "head")]


def row_errors(w, most):
    scale = np.abs(w).max(axis=1, keepdims=True) / most
    off = w - scale * np.rint(w / np.where(scale > 0, scale, 1))
    length = np.sqrt((w * w).sum(axis=1))
    return np.sqrt((off * off).sum(axis=1)) / np.where(length > 0, length, 1)


def main(model, rows=None):
    ck = Checkpoint(model)
    mla = {n.split(".")[3] for n in ck.where if n.endswith("kv_b_proj.weight")}
    for name, (_, dtype, shape, _, _) in sorted(ck.where.items()):
        if dtype != "BF16" or len(shape) != 2 or shape[0] == 1 or not name.startswith("language_model.") or "embed_tokens" in name:
            continue
        layer = name.split(".")[3] if ".layers." in name else "-"
        kind = next(k for part, k in KIND if part in name) or ("mla" if layer in mla else "kda")
        pick = np.arange(shape[0])
        if rows and rows < shape[0]:
            pick = np.arange(rows) * shape[0] // rows
        line = [kind, layer, name, str(len(pick))]
        for most in (127, 7):
            e = row_errors(ck.get(name)[pick], most)
            line += ["%.17g" % e.mean(), "%.17g" % e.max(), str(pick[e.argmax()])]
        print("\t".join(line))


main(sys.argv[1], *(int(a) for a in sys.argv[2:]))
