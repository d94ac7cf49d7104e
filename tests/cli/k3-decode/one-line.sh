# SPDX-License-Identifier: Apache-2.0
# What fails says so in one line, before any output where it can be known; the figures of the run come with -v.
export K3_MODEL=$TINY/model
cp -r "$TINY/model" m && k3-index build -q -m m
echo 1 2 3 | k3-decode -m m --gen 2 --save-state no/folder/s; echo "exit $?"
mkdir s && echo 1 2 3 | k3-decode -m m --gen 2 --save-state s; echo "exit $?"
rmdir s
echo 1 2 9999 | k3-decode -m m --gen 2; echo "exit $?"
printf '1 2\nx\n' | k3-decode -m m --gen 2; echo "exit $?"
echo 1 2 9999 | k3-decode -v -m m --gen 2 2>err; echo "exit $?"
grep -c 'failed after 0 ids' err
k3-layer embed -q -m m <<<'1 2' | k3-layer -m m -l 0 --state no/folder/s >out.npy; echo "exit $?, $(stat -c %s out.npy) bytes"
ls
