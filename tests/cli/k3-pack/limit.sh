# SPDX-License-Identifier: Apache-2.0
# A file system or limit that cannot hold a file so long: noticed before the work, nothing left behind.
cp -r "$TINY/model" m
(trap '' XFSZ; ulimit -f 2000; k3-pack -q m -o t)
echo $?
ls -A
