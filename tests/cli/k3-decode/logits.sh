# SPDX-License-Identifier: Apache-2.0
# --logits: T + max(G, 1) - 1 rows a line, lines after each other, float32; row t predicts position t + 1.
export K3_MODEL=$ODD/model
shape() { head -c 80 "$1" | tail -c +11 | tr -d ' '; echo; }
rows() { tail -c +129 "$1"; }
for g in 0 1 2 5; do echo 1 76 9 332 | k3-decode -q --gen $g --logits g$g.npy >out.txt; shape g$g.npy; done
cmp g0.npy g1.npy
head -c 128 g2.npy >part; { cat part; rows g1.npy; } | cmp - <(head -c $((128 + 4 * 333 * 4)) g2.npy)
# What it generated, fed as a prompt, gives the same rows.
echo 1 76 9 332 "$(cut -d ' ' -f -4 out.txt)" | k3-decode -q --gen 0 --logits fed.npy | cmp - <(echo)
cmp fed.npy g5.npy
printf '1 76 9 332\n\n200\n' | k3-decode -q --gen 2 --logits two.npy >out.txt; shape two.npy
echo 200 | k3-decode -q --gen 2 --logits one.npy >out.txt
{ rows g2.npy; rows one.npy; } | cmp - <(rows two.npy)
: | k3-decode -q --logits none.npy; shape none.npy
# An older file is replaced when the new one is whole.
echo old >old.npy; echo 200 | k3-decode -q --gen 2 --logits old.npy >out.txt; cmp old.npy one.npy
# Against the reference: k3-layer diff measures, 2e-4 for this model.
for case in walk single; do
    for k in prompt_ids greedy_ids; do jsonq "$ODD/expected/expected.json" cases $case $k; done | tr '\n' ' ' >ids
    k3-decode -q --gen 0 --logits l.npy <ids >out.txt
    k3-layer diff --tol-abs 2e-4 l.npy "$ODD/expected/$case.logits.npy" >diff.txt || cat diff.txt
done
for case in sea unicode; do
    for k in prompt_ids greedy_ids; do jsonq "$TINY/expected/expected.json" cases $case $k; done | tr '\n' ' ' >ids
    k3-decode -q -m "$TINY/model" --gen 0 --logits l.npy <ids >out.txt
    k3-layer diff --tol-abs 4e-5 l.npy "$TINY/expected/$case.logits.npy" >diff.txt || cat diff.txt
done
