# SPDX-License-Identifier: Apache-2.0
# While the disk works nobody spins: the processor time that slow reads add is under 5 % of the time that passes.
# Two threads on any machine, so that the pool has a worker that waits. Load on the machine only lengthens the wait.
run() {
    local TIMEFORMAT='%R %U %S'
    { time echo 3 4 5 | k3-decode -q -m "$TINY/model" --gen 2 --threads 2 --io-depth 1 --cache-gb 0 --slow-reads "$1" >ids; } 2>&1
}
fast=$(run 0) slow=$(run 10000)
echo "$fast $slow" | awk '{
    cpu = $5 + $6 - $2 - $3
    if ($4 < 2) printf "%.1f s is too little waiting to judge\n", $4
    if (cpu > 0.05 * $4) printf "%.2f s of processor time in %.1f s of waiting\n", cpu, $4
}'
