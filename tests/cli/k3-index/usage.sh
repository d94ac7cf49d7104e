# SPDX-License-Identifier: Apache-2.0
# every way to call it wrong: one line, exit 2
. "${0%/*}/common"
model
run k3-index
run k3-index frobnicate m
run k3-index -m m frobnicate
run k3-index ls -m m one two
run k3-index build m n
run k3-index show -m m
run k3-index cat -m m >/dev/null
run k3-index show -m m --decode x
run k3-index census -m m --sizes x
run k3-index ls -m m --threads 2
run k3-index cat -m m --json x
run k3-index config -m m --index x
run k3-index check -m m --write-sums
run k3-index build -m m --sums x
run k3-index ls
run k3-index ls -m ''
run k3-index -m
run k3-index --threads 0 m
run k3-index --threads 1025 m
run k3-index --threads 2x m
run k3-index --threads '' m
run k3-index --tensor m
run k3-index -x m
run k3-index --json=yes m
K3_MODEL=m run k3-index census extra other
