# SPDX-License-Identifier: Apache-2.0
# a group of its own where there are memory groups (v1): stops what takes more, passes words and status, leaves nothing
limit=$FIXTURES/../../scripts/limit-memory.sh
[ "$("$limit" -k cgroup1 -w 2>/dev/null)" = cgroup1 ] || { echo "no memory group (v1) can be made here"; exit 77; }
hungry='head -c 100M /dev/zero | tail -n 1 | wc -c'
"$limit" -k cgroup1 300M bash -c "$hungry"
"$limit" -k cgroup1 40M bash -c "$hungry" 2>/dev/null
echo
"$limit" -k cgroup1 1.5G bash -c 'f=$(sed -n "s/^[0-9]*:memory://p" /proc/self/cgroup); m=$(awk "\$3 == \"cgroup\" && /memory/ { print \$2; exit }" /proc/mounts)
    cat "$m$f/memory.limit_in_bytes"; echo "$1"; echo "$m$f" >group; exit 7' x "a  b"
echo $?
[ ! -e "$(cat group)" ] || echo "the group is still there"
