# SPDX-License-Identifier: Apache-2.0
# A full disk is noticed before the work; nothing is left behind. Where memory is no disk, all works.
unshare -rm true 2>/dev/null || { echo "no mount namespaces here"; exit 77; }
cp -r "$TINY/model" m
mkdir small large
unshare -rm bash -c '
    mount -t tmpfs -o size=2m none small && mount -t tmpfs -o size=9m none large || exit
    k3-pack -q m -o small/t; echo $?; ls -A small
    k3-pack -q m -o large/t && k3-pack check -q -m m large/t
    # The second file does not fit beside the first, which stays.
    k3-pack -q m -o large/t; echo $?; ls -A large
    k3-pack check -q -m m large/t
    true'
