# SPDX-License-Identifier: Apache-2.0
# The whole shape of K3, sparse (1.56 TB of names and sizes, 1.7 GB of disk): the same ids at the floor, with 800 MB and
# with 8 GB, inside each budget and inside a memory cgroup of plan and 5 %; bytes of a steady token as published.
# Would catch memory that grows with the number of tensors or shards, and a layer or an expert that is read twice.
. "$MEM_COMMON"
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
[ "$(sed -n 's/^MemAvailable: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -gt 9000000 ] || { echo "less than 9 GB of memory is free"; exit 77; }
[ "$(df --output=avail -k /var/tmp | tail -n 1)" -gt 3000000 ] || { echo "less than 3 GB of disk is free in /var/tmp"; exit 77; }
m=$(mktemp -d /var/tmp/k3-long.XXXXXX) || exit 1
trap 'rm -rf "$m"' EXIT
mkckpt -q --config "$K3_REAL/config.json" --sparse --seed 1 "$m/full" && k3-index build -q "$m/full" || exit 1
in=()
(memory_group) >/dev/null && in=(grouped)
# a group of its own for each run, where one can be made
grouped() {
    (trap - EXIT && memory_group && in_group "$@")
}
free() { shift && "$@"; }
echo 11 22 33 44 55 >prompt
for budget in 256000000:--preset=ultra 800000000:--memory=800M 8000000000:--memory=8G; do
    option=${budget#*:} budget=${budget%%:*}
    planned=$(k3-decode -m "$m/full" --plan --json --disk-rate 5G "$option" | jsonq - planned_bytes)
    "${in[@]:-free}" $((planned * 105 / 100)) k3-decode -q -m "$m/full" --gen 2 --stop-id none --trace t.k3t --report r.json \
        --scratch /var/tmp "$option" <prompt >ids || echo "$option: exit $?"
    [ -e want ] || cp ids want
    cmp ids want
    peak=$(jsonq r.json peak_rss_bytes)
    [ "$peak" -le "$budget" ] || echo "$option: peak $peak"
    [ "$peak" -le "$planned" ] || echo "$option: peak $peak, planned $planned"
    [ "$budget" -lt 8000000000 ] || [ $((peak * 10)) -ge $((budget * 9)) ] || echo "$option: only $peak of $budget are used"
    numbers r.json
    pinned=$pinned_bytes
    [ $((trunk_bytes + head_bytes)) = $((2 * (108811868544 + 2348853248) - pinned)) ] || echo "$option: trunk $trunk_bytes, head $head_bytes, pinned $pinned"
    # the step after the prompt asks for 16 experts of 92 layers, the prompt for the distinct ones of its five ids
    k3-trace cat t.k3t | awk '{ for (i = 6; i <= NF; i++) { sub(/:.*/, "", $i); if (!seen[$4, $5, $i]++) n[$4 == "prefill"]++ } }
        END { print n[1], n[0] }' >asked
    read -r first steady <asked
    [ "$steady" = 1472 ] || echo "$option: $steady experts a token"
    [ "$expert_requests" = $((first + steady)) ] || echo "$option: $expert_requests experts, not $first and $steady"
    [ "$expert_bytes" = $((expert_misses * 17547264)) ] || echo "$option: $expert_misses experts of $expert_bytes bytes"
done
wc -w <ids
# a steady token: 108.81 GB of trunk, 25.83 GB of experts, the head
k3-decode -m "$m/full" --plan --disk-rate 5G --trunk-gb 0 --cache-gb 0 | awk '$1 ~ /^(trunk|head|experts)$/ && $3 == "GB" { print $1, $2 }'
