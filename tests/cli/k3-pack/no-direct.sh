# SPDX-License-Identifier: Apache-2.0
# Disks with sectors of 4096, memory file systems, overlays: the same file; one line at most where direct reads are not to be had.
[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || { echo "cannot mount here"; exit 77; }
cp -r "$ODD/model" m
k3-index -q m >/dev/null
k3-pack -q m -o want
truncate -s 40M disk
mkdir loop mem over upper work
unshare -m bash -c '
    run() {
        cp -rp m "$1/m" && k3-pack "$1/m" 2>"$2.err" && cmp "$1/m/k3.trunk" want && k3-pack check -q -m m "$1/m/k3.trunk"
        grep -v -e "direct reads" -e "tiles, " "$2.err"
        [ "$(grep -c "direct reads" "$2.err")" -le 1 ] || cat "$2.err"
    }
    mount -t tmpfs none mem && run mem mem
    dev=$(losetup -b 4096 -f --show disk 2>/dev/null) && mkfs.ext4 -q -b 4096 disk 2>/dev/null && mount "$dev" loop && run loop loop && echo loop >&3
    mount -t overlay -o lowerdir=m,upperdir=mem/u,workdir=mem/w none over 2>/dev/null && run over over
    [ -n "$dev" ] && { umount loop; losetup -d "$dev"; }' 3>tried
true
