# SPDX-License-Identifier: Apache-2.0
# a full disk is an error for data and traces alike, and leaves nothing behind
[ -w /dev/full ] || { echo "no /dev/full"; exit 77; }
k3-trace synth -n 2 --shape 4,1,8,2 -o t.k3t
t() { "$@"; echo "$?" >&2; }
{
    t k3-trace cat t.k3t >/dev/full
    t k3-trace synth -n 1 --shape 4,1,8,2 -o /dev/full
    t k3-trace plot -o /dev/full t.k3t
    t k3-trace export t.k3t >/dev/full
} 2>&1
ls
