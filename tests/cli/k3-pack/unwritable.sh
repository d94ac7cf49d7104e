# SPDX-License-Identifier: Apache-2.0
# A folder that cannot be written to: exit 3, and what to do.
cp -r "$TINY/model" m
chmod a-w m
as_user() { if [ "$(id -u)" -eq 0 ]; then setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; else "$@"; fi; }
chmod a+rx . .. m
as_user test -r m/config.json -a -x "$(command -v k3-pack)" || { echo "cannot become another user here"; exit 77; }
as_user k3-pack -q m
echo $?
k3-pack -q m -o no/such/folder/t
echo $?
k3-pack -q m -o /dev/full
echo $?
mkdir t && k3-pack -q m -o t
echo $?
ls -A m t | grep trunk || true
