# SPDX-License-Identifier: Apache-2.0
# Under a real cgroup v2, in an emulated machine: the plan takes what the tightest group leaves, page cache not counted as
# used; what is too big is refused; a run in a group of plan and 5 % is not killed and gives the bits that it gives outside;
# the threads see the CPU quota. The kernel is the newest of /boot, or $K3_VMLINUZ with lib/modules beside its folder.
# Would catch files of v2 that are read under a wrong name, and memory that only this version charges to a group.
. "$MEM_COMMON"
PATH=$PATH:/usr/sbin:/sbin
for p in qemu-system-x86_64 busybox cpio mkfs.ext4; do command -v $p >/dev/null || { echo "$p is not installed"; exit 77; }; done
ldd "$(command -v busybox)" >/dev/null 2>&1 && { echo "busybox is not static"; exit 77; }
case $(ldd "$(command -v k3-decode)") in *libasan* | *libtsan*) echo "memory under a sanitizer is another one"; exit 77 ;; esac
kernel=${K3_VMLINUZ:-$(ls -v /boot/vmlinuz-* 2>/dev/null | tail -n 1)}
[ -r "$kernel" ] || { echo "no kernel to boot: neither K3_VMLINUZ nor /boot/vmlinuz-*"; exit 77; }
scratch=$(mktemp -d /var/tmp/k3-cgroup2.XXXXXX) && cd "$scratch" || exit 1
trap 'rm -rf "$scratch"' EXIT

# ---- the disk: a model of 200 MB, a prompt, and what is answered out here ----
mkdir disk && middle disk/big
echo 10 11 12 >disk/prompts
k3-decode -q -m disk/big --gen 2 --logits disk/want.npy <disk/prompts >disk/want || exit 1
truncate -s 300M image && mkfs.ext4 -q -d disk image && rm -r disk || exit 1

# ---- the first root: a shell, the programs and their libraries ----
mkdir -p root/bin root/modules
for p in busybox bash k3-decode jsonq; do
    p=$(command -v $p)
    cp "$p" root/bin
    ldd "$p" 2>/dev/null | grep -o '/[^ ]*' | xargs -r cp -L --parents -t root
done
cp "$MEM_COMMON" "$FIXTURES/../../scripts/k3-doctor" root/bin
# A kernel may have the disk and its file system as modules. Their order is not known: the guest tries until all are in.
modules=$(dirname "$(dirname "$kernel")")/lib/modules/${kernel##*/vmlinuz-}/kernel
for m in nvme nvme-core nvme-common nvme-auth t10-pi crc-t10dif crct10dif_common crct10dif_generic crc64 crc64-rocksoft \
    crc64-rocksoft_generic ext4 jbd2 mbcache crc16 libcrc32c crc32c_generic; do
    find "$modules" -name "$m.ko*" -exec cp -t root/modules {} + 2>/dev/null
done
find root/modules -name '*.xz' -exec xz -d {} +

# process 1 of the guest: results go to the second serial line, errors and the kernel's words to the first
cat >root/init <<'INIT'
#!/bin/bash
/bin/busybox --install -s /bin
export PATH=/bin LC_ALL=C
mkdir -p /proc /sys /dev /tmp /disk
mount -t proc none /proc && mount -t sysfs none /sys && mount -t devtmpfs none /dev && mount -t tmpfs none /tmp
exec </dev/null >/dev/ttyS1
stty -F /dev/ttyS1 raw
bash /inside && echo end
poweroff -f
INIT

cat >root/inside <<'INSIDE'
for try in 1 2 3 4 5 6; do
    for m in /modules/*.ko; do insmod "$m" 2>/dev/null; done
done
mount -t ext4 -o ro /dev/nvme0n1 /disk || { echo "skip: this kernel has no NVMe or no ext4"; exit; }
mount -t cgroup2 none /sys/fs/cgroup && cd /sys/fs/cgroup && echo "+memory +cpu" >cgroup.subtree_control ||
    { echo "skip: this kernel has no cgroup v2 with memory and cpu"; exit; }
. /bin/mem-common

# at GROUP COMMAND ...: runs it there
at() {
    bash -c 'echo $$ >"$1/cgroup.procs" && shift && exec "$@"' - "$@"
}
# sees NAME GROUP MB: a plan that takes all it can is allowed nine tenths of what the group leaves, less 1/256: of MB, but
# for what the process itself has until then
sees() {
    local room
    room=$(at "$2" k3-decode -m /disk/big --plan --json --disk-rate 5G --preset auto 2>/dev/null | jsonq - budget_bytes)
    room=$((room * 10 / 9))
    if [ $room -lt $(($3 * 997000)) ] && [ $room -gt $((($3 - 4) * 1000000)) ]; then room="$3 MB"; fi
    echo "$1: $room"
}
mkdir a
echo "+memory +cpu" >a/cgroup.subtree_control
mkdir a/b a/c
echo 120000000 >a/b/memory.max
sees "own" a/b 120
echo 150000000 >a/memory.max
sees "own, the parent has more" a/b 120
at a/b cat /disk/big/*.safetensors >/dev/null
[ "$(cat a/b/memory.current)" -gt 100000000 ] || echo "only $(cat a/b/memory.current) of page cache"
sees "own, full of page cache" a/b 120
for i in 1 2 3; do at a/b dd if="$(ls /disk/big/*.safetensors | head -n 1)" of=/dev/null bs=1M count=60 2>/dev/null; done
[ "$(sed -n 's/^active_file //p' a/b/memory.stat)" -gt 30000000 ] || echo "only $(grep ^active_file a/b/memory.stat)"
sees "own, of page cache that was read again" a/b 120
echo 80000000 >a/memory.max
sees "parent" a/b 80
at a/c dd if=/dev/zero of=/tmp/zero bs=100k count=200 2>/dev/null
sees "parent, another child uses some" a/b 60
rm /tmp/zero
echo max >a/memory.max
echo 70000000 >a/b/memory.high
sees "own memory.high" a/b 70
echo max >a/b/memory.max
echo max >a/b/memory.high
echo 90000000 >a/memory.high
sees "memory.high of the parent" a/b 90
echo "k3-doctor, the same: $(at a/b bash /bin/k3-doctor --no-disk --json | jsonq - cgroup_limit)"
echo max >a/memory.high

# too big: a plan and a run are refused, and each change that is suggested fits
echo 32000000 >a/b/memory.max
set -- -m /disk/big --gen 2 --memory 100M --context 4000 --ring 16 --tile 1Mi
at a/b k3-decode --plan --disk-rate 5G "$@" >/dev/null 2>/tmp/err
echo "too big: plan exit $?"
at a/b k3-decode -q "$@" </disk/prompts 2>/tmp/err
echo "too big: run exit $?"
sed 's/.*not enough memory:.* would help: //; s/, or /\n/g' /tmp/err | while read -r change; do
    echo "suggested: ${change% *}"
    at a/b k3-decode --plan --disk-rate 5G "$@" $change >/dev/null || echo "no plan fits with $change"
done

# quota: one CPU of two, and the run says so
echo max >a/b/memory.max
threads() {
    echo "$1: threads $(at a/b k3-decode -m /disk/big --plan --json --disk-rate 5G | jsonq - threads)"
}
threads "no quota"
echo "100000 100000" >a/b/cpu.max
threads "own quota"
at a/b k3-decode -m /disk/big --gen 1 </disk/prompts 2>&1 >/dev/null | grep -o '1 thread$'
echo "110000 100000" >a/b/cpu.max
threads "a part of a second"
echo max >a/b/cpu.max
echo "50000 100000" >a/cpu.max
threads "quota of the parent"
echo max >a/cpu.max

# runs in a group of their own: in plan and 5 %, then in what the group leaves
memory_group
runs=0
run() { # BYTES OPTION ...
    in_group "$1" k3-decode -q -m /disk/big --gen 2 --threads 2 --logits /tmp/got.npy --report /tmp/r.json "${@:2}" </disk/prompts >/tmp/got ||
        { echo "exit $? from $*"; return 1; }
    cmp /tmp/got /disk/want && cmp /tmp/got.npy /disk/want.npy && runs=$((runs + 1))
}
for o in "--memory 100M" "--memory 150M --direct off --huge off" "--memory 130M --threads 8 --io-depth 32"; do
    room=$(planned -m /disk/big --context 64 $o)
    run $((room * 105 / 100)) --context 64 $o
done
run 60000000 --preset auto
[ "$(jsonq /tmp/r.json plan budget_bytes)" -lt 60000000 ] || echo "planned for $(jsonq /tmp/r.json plan budget_bytes)"
# beyond memory.high it would crawl; cache that others left there reaches it too
echo max >"$group_limit"
echo 3 >/proc/sys/vm/drop_caches
group_limit=$group/memory.high run 60000000 --preset auto
echo max >"$group/memory.high"
n=$(sed -n "s/^high //p" "$group/memory.events")
[ "$n" -lt 20 ] || echo "memory.high was reached $n times"
echo "$runs runs, one answer, killed: $(sed -n 's/^oom_kill //p' "$group/memory.events")"
# the limit is a real one: who is told of more memory than the group has does not survive it
in_group 60000000 k3-decode -q -m /disk/big --mem-limit 1G --memory 150M --gen 2 </disk/prompts >/tmp/got
echo "told of more: exit $?, killed: $(sed -n 's/^oom_kill //p' "$group/memory.events")"
INSIDE
chmod +x root/init
(cd root && find . | cpio -o -H newc --quiet | gzip -1) >initrd || exit 1

# ---- the machine: two cores, emulated everywhere alike ----
timeout 500 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -smp 2,cores=2 -m 1G -nodefaults -display none -no-reboot \
    -serial file:console -serial file:result -kernel "$kernel" -initrd initrd -append "console=ttyS0 quiet panic=-1" \
    -drive file=image,if=none,id=disk,format=raw -device nvme,drive=disk,serial=1 || echo "qemu: exit $?"
skip=$(sed -n 's/^skip: //p' result)
[ -z "$skip" ] || { echo "$skip"; exit 77; }
cat result
grep -qx end result || tail -n 20 console >&2
