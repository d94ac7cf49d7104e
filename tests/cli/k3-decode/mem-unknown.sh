# SPDX-License-Identifier: Apache-2.0
# Where the kernel does not say what is available, sysinfo does, and --memory is believed.
# Would catch "unknown" taken for nothing.
shim=$(command -v mkckpt) && shim=${shim%/*}/shim_paths.so
case $(ldd "$(command -v k3-decode)") in *libasan* | *libtsan*) echo "a preloaded library comes before the sanitizer"; exit 77 ;; esac
export K3_MODEL=$TINY/model
echo 77 121 700 | k3-decode -q --gen 4 --stop-id none >want
# without(FILE): a /proc/meminfo that is missing, or says other things
printf 'MemTotal:       16000000 kB\nMemFree:          100000 kB\n' >old-kernel
for meminfo in missing old-kernel; do
    for o in "" "--memory 100M" "--memory 20M" "--preset auto"; do
        # shellcheck disable=SC2086
        echo 77 121 700 | LD_PRELOAD=$shim K3_PATHS="/proc/meminfo=$PWD/$meminfo" k3-decode -q --gen 4 --stop-id none $o | cmp - want
    done
    # more than any machine has is believed too
    LD_PRELOAD=$shim K3_PATHS="/proc/meminfo=$PWD/$meminfo" k3-decode --plan --memory 900T --disk-rate 1G --threads 1 | grep -o 'planned, .*'
done
