# SPDX-License-Identifier: Apache-2.0
# Misuse: one line on stderr, exit 2, nothing written; a missing folder is exit 3.
export K3_MODEL=$ODD/model
try() { echo 1 | k3-decode -q "$@" --logits l.npy --report r.json; echo "exit $?"; }
for n in abc 1x '' -1 1.5 ' 1' 0x10 1e3 18446744073709551616 99999999999999999999999; do try --gen "$n"; done
for n in 0 -1 8 94 5000 x ''; do try --layers "$n"; done
for n in 333 x '' -1 4294967296 None; do try --stop-id "$n"; done
for n in 0 x 1025; do try --threads "$n"; done
for n in 0 x 1048577; do try --chunk "$n"; done
for n in 4095 1Zi 2G ''; do try --tile "$n"; done
try --bogus
try -Z
try --gen=
try --quiet=yes
try prompt.txt
echo 1 | k3-decode -q --gen; echo "exit $?"
echo 1 | k3-decode -q -n; echo "exit $?"
K3_MODEL='' try
(unset K3_MODEL; try)
try -m no/such/folder
try --index no.index
ls
