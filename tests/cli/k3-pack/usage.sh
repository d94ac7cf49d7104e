# SPDX-License-Identifier: Apache-2.0
# misuse: exit 2, one line, nothing left behind
try() { k3-pack "$@"; echo "$?"; }
try
try build
try check
try --nonsense
try a b
try build a b
try check a b
try -m a b
try a --tile 1
try a --tile 4095
try a --tile 16777217
try a --tile 17M
try a --tile x
try a --io-depth 0
try a --io-depth 257
try a --threads 0
try a --direct maybe
try check -o x t
try info --threads 2 t
try check --tile 1Mi t
try info --sums s t
K3_MODEL='' try build
# what is not there: exit 3
try nowhere
try check nowhere
try info nowhere
try info -m nowhere t
mkdir m && try m
try info m
ls -A . m
