# SPDX-License-Identifier: Apache-2.0
# the device is measured at three depths with reads that lie inside the file; what is no device is said to be none
. "${0%/*}/common"
model
same() { sed 's/  [0-9.]* [kMG]*B\/s$/  RATE/; s/, past the page cache$/, HOW/; s/, THROUGH .*/, HOW/'; } # not every file system has direct reads
k3-index probe -m m --seconds 0.05 | same
head -c 3000000 /dev/urandom >"a file"
k3-index probe "a file" --seconds 0.05 | same
k3-index probe "a file" --seconds 0.05 --size 64Ki --json >j
jsonq j read_size; jsonq j holes
# bytes = reads x size at each depth, and every depth read as many as it has readers, at the least
for d in 0 1 2; do
    reads=$(jsonq j depths $d reads) depth=$(jsonq j depths $d depth)
    [ $((reads * 65536)) -eq "$(jsonq j depths $d bytes)" ] && [ "$reads" -ge "$depth" ] || echo "depth $depth: $reads reads"
done
k3-index probe "a file" --seconds 0.05 --size 64Ki --depth 2,33 --huge off | same
truncate -s 50M sparse
k3-index probe sparse --seconds 0.05 | sed -n 2p
cp "a file" /dev/shm/k3-probe.$$ && k3-index probe /dev/shm/k3-probe.$$ --seconds 0.05 | sed -n 1p | sed "s/$$/N/"
rm -f /dev/shm/k3-probe.$$
run k3-index probe . 2>&1
run k3-index probe missing 2>&1
: >empty
run k3-index probe empty 2>&1
run k3-index probe "a file" --size 4M 2>&1
run k3-index probe "a file" --size 1 2>&1
run k3-index probe "a file" --seconds 0 2>&1
run k3-index probe 2>&1
run k3-index ls -m m --seconds 1 2>&1
for wrong in "" "," "2," 0 257 x 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1; do run k3-index probe "a file" --depth "$wrong" 2>&1; done
run k3-index probe "a file" --huge maybe 2>&1
