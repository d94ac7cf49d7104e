# SPDX-License-Identifier: Apache-2.0
# Readers, ring, cache and compute threads under ThreadSanitizer, from streaming to everything resident.
# Would catch a tile or an expert used while a reader still writes it, and a count that two threads add to.
. "$MEM_COMMON"
model tiny m
printf '77 121 700 1015 1256 44 256 1668\n3\n' >prompts
reference m --gen 3
k3-pack -q m -o t.trunk --tile 64Ki
slot=16384
floor=$(planned -m m --threads 3 --context 64 --memory 1)
# sizes of trunk and of expert cache: nothing, one, a step's, half, everything
i=0
for sizes in 0B,0 70000B,1 0B,4 2400000B,48 4649743B,192 9M,384; do
    for policy in lru layers lfu; do
        i=$((i + 1))
        cache=${sizes#*,} depths=(1 2 3 8 16) threads=(2 1 3 4)
        trunk=(none none t.trunk)
        same --trunk-gb "${sizes%,*}" --cache-gb $((cache * slot))B --cache-policy $policy --threads "${threads[i % 4]}" \
            --io-depth "${depths[i % 5]}" --ring $((2 + i % 4)) --tile 64Ki --trunk "${trunk[i % 3]}" --chunk $((1 + i % 5))
    done
done
for o in --memory=$floor --memory=16M --preset=ultra --preset=auto --memory=20M; do
    same --context 64 --threads 2 "$o"
    same --context 64 --threads 3 "$o" --spill on
done
for us in 0 300; do
    same --slow-reads $us --trunk-gb 1 --cache-gb 100000B --chunk 1 --lookahead 4 --threads 2
    same --slow-reads $us --trunk-gb 1 --cache-gb 0 --chunk 1 --lookahead 4 --threads 3 --io-depth 8
done
same --trunk-gb 0 --cache-gb 0 --ring 18 --threads 2 --tile 64Ki --chunk 1
same --slow-reads 300 --trunk-gb 2M --cache-gb 1M --io-depth 5 --threads 2
same --slow-reads 300 --trunk-gb 0 --cache-gb 0 --ring 2 --io-depth 1 --threads 2 --direct off
same --slow-reads 100 --trunk-gb 0 --cache-gb 160K --chunk 64 --threads 4
echo "$same_runs runs, one answer"
