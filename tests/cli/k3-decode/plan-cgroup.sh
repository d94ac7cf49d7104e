# SPDX-License-Identifier: Apache-2.0
# The plan sees what the process's control groups leave, version 1 and 2, not only what the machine has free;
# the threads see their CPU quota and the affinity mask. The groups are files in a folder here.
# Would catch a limit of a parent that is overlooked, cache that is counted as used, and a controller in company.
. "${0%/*}/mem-common"
model tiny m
shim=$(command -v mkckpt) && shim=${shim%/*}/shim_paths.so
export ASAN_OPTIONS=verify_asan_link_order=0 K3_PATHS="/proc/self/cgroup=$PWD/self;/sys/fs/cgroup=$PWD/fs"

# put FILE VALUE: a file of the fake /sys/fs/cgroup
put() {
    mkdir -p "fs/${1%/*}" && printf '%s\n' "$2" >"fs/$1"
}
# sees NAME: what a plan that takes all it can is allowed, ten ninths of it: what the group leaves, less 1/256; with a quota the threads
sees() {
    LD_PRELOAD=$shim k3-decode -m m --plan --json --disk-rate 5G --preset auto >plan.json || return
    local budget
    budget=$(jsonq plan.json budget_bytes)
    if [ "$budget" -gt 300000000 ]; then budget=machine; else budget=$(((budget * 10 + 8) / 9)); fi
    case $1 in *quota) budget="$budget, threads $(jsonq plan.json threads)" ;; esac
    echo "$1: $budget"
}
# group 2: limit of the parent, less what is used, and the cache that can go
echo "0::/a/b" >self
put a/b/memory.max max
put a/b/memory.current 1000000
put a/memory.max 90000000
put a/memory.current 40000000
put a/memory.stat "anon 1
inactive_file 3000000
active_file 2000000"
sees "v2 parent"
put a/b/memory.max 41000000
sees "v2 own"
put a/b/memory.high 31000000
sees "v2 own memory.high"
put a/b/memory.high max
put a/memory.high 55000000
sees "v2 memory.high of the parent"
rm fs/a/memory.high
put a/b/memory.current 50000000
LD_PRELOAD=$shim k3-decode -m m --plan --disk-rate 5G --preset auto >plan.txt 2>&1
echo "v2 used up: exit $?"
put a/b/cpu.max "100000 100000"
put a/b/memory.max max
sees "v2 quota"
rm -r fs
echo "0::/" >self
put ./memory.max 70000000
put ./memory.current 20000000
sees "v2 at the root of a namespace"
rm -r fs
sees "v2 without the controller"

# group 1, alone and mounted with another; a group that is not there under its name, as in a container
printf '9:name=systemd:/\n4:memory:/a/b\n1:cpu:/\n0::/\n' >self
put memory/a/b/memory.limit_in_bytes 9223372036854771712
put memory/a/b/memory.usage_in_bytes 1000000
put memory/a/memory.limit_in_bytes 60000000
put memory/a/memory.usage_in_bytes 30000000
put memory/a/memory.stat "cache 9
inactive_file 1
active_file 2
total_inactive_file 1500000
total_active_file 500000"
sees "v1 parent"
printf '4:hugetlb,memory:/a/b\n' >self
sees "v1 second of two"
printf '4:memory,hugetlb:/a/b\n' >self
sees "v1 first of two"
printf '4:memory:/docker/0123456789\n' >self
put memory/memory.limit_in_bytes 55000000
put memory/memory.usage_in_bytes 5000000
sees "v1 container"
printf '4:memory:/a:b\n' >self
put memory/a:b/memory.limit_in_bytes 45000000
put memory/a:b/memory.usage_in_bytes 5000000
sees "v1 name with a colon"
printf '3:cpu,cpuacct:/q\n' >self
put cpu/q/cpu.cfs_quota_us 50000
put cpu/q/cpu.cfs_period_us 100000
sees "v1 quota"

# one CPU: one thread, and the run says so
unset K3_PATHS
echo 77 121 700 | taskset -c 0 k3-decode -m m --gen 1 2>err
grep -o '1 thread$' err
