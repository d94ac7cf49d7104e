# SPDX-License-Identifier: Apache-2.0
# a pipe of any length needs the same memory: 24 million requests, which would take 150 MB to hold,
# under a limit of 80 MB of address space
k3-trace synth flat -n 10 --shape 4,1,64,4 -o small.k3t
(ulimit -v 80000; k3-trace sim -p lru,lfu,s3fifo -s 6,12 --threads 1 --tsv small.k3t >/dev/null 2>&1) ||
    { echo "this build needs more address space for anything"; exit 77; }
k3-trace synth flat -n 2000000 --shape 4,1,64,4 | (ulimit -v 80000; k3-trace sim -p lru,lfu,s3fifo -s 6,12 --threads 1 --tsv) | cut -f 1,2,4
k3-trace synth flat -n 2000000 --shape 4,1,64,4 | (ulimit -v 80000; k3-trace info) | grep choices
# what must know the future says so when it does not fit
k3-trace synth flat -n 2000000 --shape 4,1,64,4 | (ulimit -v 80000; k3-trace sim -p belady -s 6 --threads 1) 2>&1 | sed 's/[0-9]\{4,\}/N/'
echo "${PIPESTATUS[1]}"
