# SPDX-License-Identifier: Apache-2.0
# 200 MB of every kind through 100 MB of address space
export K3_MODEL="$TINY/model"
(ulimit -v 100000 && k3-tok --version >/dev/null 2>&1) || { echo "no address space limit here"; exit 77; }
ulimit -v 100000
head -c 200000000 /dev/zero | k3-tok encode -c
yes 'Call me Ishmael.' | head -c 50000000 | k3-tok encode | k3-tok decode | cksum
yes 'Call me Ishmael.' | head -c 50000000 | cksum
yes $'!\x1c' | tr -d '\n' | head -c 5000000 | k3-tok encode -c   # pieces of 800,000 bytes
