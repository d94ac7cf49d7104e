# SPDX-License-Identifier: Apache-2.0
# A run has the plan that --plan shows, though --plan measures the device: at sizes where rates could divide memory
# in another way, and at the same sizes every time.
cp -r "$TINY/model" m
export K3_MODEL=m
k3-index -q m
k3-pack -q m
seq 3 34 | tr '\n' ' ' >prompt
for memory in 20M 32M 34M 36M 1G; do
    k3-decode -q --plan --json --memory $memory >plan.json </dev/null
    k3-decode -q --report run.json --stop-id none --memory $memory <prompt >ids
    for k in planned_bytes ring io_depth expert_slots chunk positions; do
        echo "$k $(jsonq plan.json $k) $(jsonq run.json plan $k)"
    done | awk -v m=$memory '$2 != $3 {print m ": " $1 " planned " $2 ", in the run " $3}'
done
k3-decode --plan --memory 34M --disk-rate 12G </dev/null | grep expert.cache
k3-decode --plan --memory 34M </dev/null | grep expert.cache
