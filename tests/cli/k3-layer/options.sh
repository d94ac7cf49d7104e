# SPDX-License-Identifier: Apache-2.0
# Misuse: one line, exit 2. The layer, the part and the file are named.
export K3_MODEL=$ODD/model
try() { k3-layer -q "$@" </dev/null; echo "exit $?"; }
try
try -l 7
try -l 94
try -l -1
try -l 1x
try -l ''
try -l 18446744073709551616
try -l
try --bogus
try -z
try -l 0 x.npy
try layer -l 0
try embed -l 0
try embed 1 2
try head --part attn
try head --layers 0
try head --layers 8
try head --layers 5000
try -l 0 --part mla
try -l 0 --part
try -l 0 --weights w.npy
try -l 1 --part moe --weights w.npy
try -l 1 --part router --state s
try -l 1 --part moe --state s
try -l 0 --layers 3
try -l 0 --tol 1
try -l 0 --json
try -l 0 --threads 0
try -l 0 --chunk 0
try -l 0 --threads=
try diff
try diff a.npy
try diff a.npy b.npy c.npy
try diff --tol x a.npy b.npy
try diff --tol -1 a.npy b.npy
try diff -m "$ODD/model" a.npy b.npy
try diff --quiet=3 a.npy b.npy
K3_ISA=sse9 k3-layer -l 0 </dev/null 2>err; echo "exit $?"; sed "s/: scalar.*//" err; rm err
K3_MODEL='' try -l 0
(unset K3_MODEL; try embed)
try -l 0 -m no/such/folder
try -l 0 --index no.index
ls
