# SPDX-License-Identifier: Apache-2.0
# A full disk under stdout, --logits or --report: exit 3, and nothing that looks finished.
export K3_MODEL=$ODD/model
exec 3>&1
try() { echo 1 2 3 | k3-decode -q --gen 3 "$@"; echo "exit $?, $(echo *)" >&3; }
try >/dev/full
try --logits l.npy >/dev/full
rm -f ./*; try --logits /dev/full
try --report /dev/full
try --report /dev/full --logits l.npy
rm -f ./*; try --logits no/such/l.npy
try --report no/such/r.json
mkdir folder; try --logits folder; try --report folder; rmdir folder
# A limit on the size of files stands for the disk: logits of 5 rows need more than 4 KiB.
limited() { trap '' XFSZ; ulimit -f 4; try "$@"; }
(limited --logits l.npy)
echo old >l.npy; (limited --logits l.npy); cat l.npy
# Direct to a pipe or a device the array comes whole.
rm -f ./*
try --logits l.npy
try --logits >(cat >copy.npy; echo "done" >ready)
until [ -s ready ]; do sleep 0.1; done
cmp l.npy copy.npy
