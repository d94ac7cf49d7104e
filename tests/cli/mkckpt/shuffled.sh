# SPDX-License-Identifier: Apache-2.0
# A shuffled checkpoint is the same model: experts in pieces, layers over two shards, headers that list backwards,
# tensors at odd addresses. Everything that reads shards must come to the same logits.
for order in released shuffled; do
    mkckpt -q --config "$ODD/model/config.json" --order $order $order
    k3-index -q $order && k3-index check -q -m $order
    echo 3 1 332 4 | k3-decode -q -m $order --gen 5 --stop-id none --logits $order.npy
done
cmp released.npy shuffled.npy
# every set of kernels reads odd addresses
for isa in scalar avx2 avx512 avx512vbmi2 neon; do
    echo 3 1 332 4 | K3_ISA=$isa k3-decode -q -m shuffled --gen 5 --stop-id none --logits isa.npy >ids 2>err || { grep -q 'lacks that' err && continue; }
    cat err
    cmp released.npy isa.npy
done
k3-pack -q shuffled && k3-pack check -q -m shuffled
echo 3 1 332 4 | k3-decode -q -m shuffled --gen 5 --stop-id none --logits packed.npy
cmp released.npy packed.npy
k3-index ls -m shuffled '*layers.4.*' | sed 1d | cut -f 5 | sort | uniq -c | awk '$1 > 10 {print $2}'
k3-index ls -m shuffled | sed 1d | awk -F '\t' '$2 == "F32" && $6 % 4' | wc -l | awk '{print ($1 > 0) ? "odd addresses" : "all aligned"}'
# the six parts of an expert: where in the file each begins
k3-index ls -m shuffled '*layers.4.*experts.2.*' | sed 1d | cut -f 5,6 | sort -u | wc -l
k3-index ls -m released '*layers.4.*experts.2.*' | sed 1d | cut -f 4,6
