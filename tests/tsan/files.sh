# SPDX-License-Identifier: Apache-2.0
# Packing, verifying, checksums and routing simulations under ThreadSanitizer.
# Would catch a tile handed to a writer before it is whole, and sums of two threads that get mixed up.
. "$MEM_COMMON"
model odd m
model tiny t
for depth in 1 3 16; do
    k3-pack -q t -o a.trunk --tile 64Ki --io-depth $depth --threads 3 && k3-pack check -q a.trunk >/dev/null
    k3-pack -q m -o b.trunk --tile 4Ki --io-depth $depth --threads 2 && k3-pack check -q b.trunk >/dev/null
done
k3-index verify -q -m t --threads 3 --write-sums >/dev/null
k3-index verify -q -m t --threads 2 >/dev/null
mkckpt -q --config "$ODD/model/config.json" --seed 9 --order shuffled made && k3-index -q build -m made --threads 3 >/dev/null
seq -s ' ' 1 40 | k3-decode -q -m t --gen 8 --stop-id none --trace t.k3t >/dev/null
k3-trace sim -q t.k3t --threads 3 >sizes
k3-layer embed -q -m t <<<"5 6 7 8 9 10 11" >in.npy
for i in 1 2 3; do
    cp in.npy x.npy
    for l in 0 1 2 3; do k3-layer -q -m t -l $l --threads $i <x.npy >y.npy && mv y.npy x.npy; done
    k3-layer head -q -m t --layers 4 --threads $i <x.npy >out.$i.npy
done
cmp out.1.npy out.2.npy && cmp out.1.npy out.3.npy && echo "one answer"
