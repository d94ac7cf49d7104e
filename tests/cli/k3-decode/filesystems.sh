# SPDX-License-Identifier: Apache-2.0
# Memory file systems, an overlay and a disk with sectors of 4096 bytes: the same answer from shards and from a packed
# trunk, direct reads where they can be had, and one line where they cannot.
# Would catch reads aligned to 512 on such a disk, a fallback that is silent, and one that is told for every file.
. "${0%/*}/mem-common"
[ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null || { echo "cannot mount here"; exit 77; }
model tiny m
printf '77 121 700 1015\n' >prompts
reference m --gen 3
mkdir ram mem loop over low
truncate -s 60M disk
# All mounts are in a name space of their own, and the loop device goes with its mount: nothing stays, whatever happens.
cat >inside <<'X'
. "$MEM_COMMON"
# answer NAME MODEL OPTION ...: that of the disk; how many lines told of the page cache
answer() {
    k3-decode -m "$2" --threads 1 --gen 3 --logits got.npy "${@:3}" <prompts >got 2>err || { echo "$1: exit $?"; cat err; return; }
    cmp got want && cmp got.npy want.npy || echo "$1: another answer"
    told=$(grep -c "no direct reads on this file system, using the page cache" err)
}
# kind NAME FOLDER: from shards, packed, streaming and kept
kind() {
    local o s direct=0
    [ -e "$2/m" ] || cp -r m "$2" || return
    dd if="$2/m/config.json" bs=4096 iflag=direct of=copy 2>/dev/null || direct=1
    k3-index -q build -m "$2/m" && k3-pack -q -m "$2/m" -o "$2/m/k3.trunk" --tile 64Ki || return
    for o in "--trunk none" "--trunk $2/m/k3.trunk"; do
        # shellcheck disable=SC2086
        for s in "--trunk-gb 0 --cache-gb 0" "--trunk-gb 2M --cache-gb 1M" "--memory 1G"; do
            answer "$1" "$2/m" $o $s
            [ "$told" -eq $direct ] || echo "$1, $o $s: $told lines tell of the page cache, not $direct"
        done
        answer "$1" "$2/m" $o --direct off --trunk-gb 0
        [ "$told" -eq 0 ] || echo "$1: the page cache was asked for, and told of"
    done
    k3-index verify -q -m "$2/m" >/dev/null || echo "$1: k3-index verify fails"
    echo "$1" >>tried
}
# cached FILE: pages of it in the page cache
cached() { fincore -nro PAGES "$1"; }
forget() { sync "$1" && dd if="$1" iflag=nocache count=0 status=none; }

mount -t ramfs none ram && kind ramfs ram
mount -t tmpfs none mem && kind tmpfs mem
mkdir mem/u mem/w
cp -r m low && mount -t overlay -o lowerdir=low,upperdir=mem/u,workdir=mem/w none over 2>/dev/null && kind overlay over
mkfs.ext4 -q -b 4096 disk 2>/dev/null && device=$(losetup --sector-size 4096 -f --show disk 2>/dev/null) && {
    mount "$device" loop
    mounted=$?
    losetup -d "$device"
    [ $mounted -eq 0 ] && kind loop loop && {
        answer loop loop/m --spill on --scratch loop --trunk-gb 0
        shard=loop/m/model-00006-of-000015.safetensors
        forget $shard && answer loop loop/m --trunk none --trunk-gb 0
        [ "$(cached $shard)" = 0 ] || echo "loop: $(cached $shard) pages of a shard went through the page cache"
        forget $shard && answer loop loop/m --trunk none --trunk-gb 0 --direct off
        [ "$(cached $shard)" != 0 ] || echo "loop: cached pages are not seen"
    }
}
X
unshare -m bash inside
[ "$(tr '\n' ' ' <tried)" = "ramfs tmpfs overlay loop " ] || { echo "could only mount: $(tr '\n' ' ' <tried)"; exit 77; }
