# SPDX-License-Identifier: Apache-2.0
# a folder that cannot be written to: exit 3 and what to do; an index elsewhere serves as well
. "${0%/*}/common"
model
rm m/k3.index
chmod a-w m
as_user() { if [ "$(id -u)" -eq 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
mkdir out && chmod 777 out
chmod a+rx . .. m
as_user test -r m/config.json -a -x "$(command -v k3-index)" || { echo "cannot become another user here"; exit 77; }
run as_user k3-index -q m
run as_user k3-index -q verify m --write-sums
run as_user k3-index -q build -m m --index out/x.index
run as_user k3-index ls -m m --index out/x.index lm_head
run as_user k3-index -q verify -m m --index out/x.index --write-sums --sums out/x.sums
run as_user k3-index -q verify -m m --index out/x.index --sums out/x.sums
# a shard that may not be read
chmod a-r m/model-00002*
run as_user k3-index -q build -m m --index out/y.index
run as_user k3-index check -m m --index out/x.index
run as_user k3-index -q verify -m m --index out/x.index | tail -n 2
ls -A m out | grep -v -e json -e safetensors
