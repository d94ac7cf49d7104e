# SPDX-License-Identifier: Apache-2.0
# In a real memory cgroup of the plan and 5 % a run is not killed and answers the same; on a model of 200 MB with full data.
# A limit on addresses (ulimit -v) would not do: it counts what is mapped, a group what is there, the kernel's part too.
# Would catch memory that the plan does not count and that VmHWM does not show: page tables, buffers of the kernel.
. "${0%/*}/mem-common"
case $(ldd "$(command -v k3-decode)") in *libasan* | *libtsan*) echo "memory under a sanitizer is another one"; exit 77 ;; esac
memory_group
middle big
seq -s' ' 10 60 >prompts
reference big --gen 4

# fits OPTION ...: in a group that allows 5 % more than is planned
fits() {
    local planned
    planned=$(k3-decode -m big --plan --json --disk-rate 5G --context 64 "$@" | jsonq - planned_bytes) || return
    in_group $((planned * 105 / 100)) k3-decode -q -m big --gen 4 --threads 2 --context 64 --report r.json "$@" <prompts >got 2>err ||
        { echo "exit $? from $*: $(cat err)"; return; }
    cmp want got || echo "another answer from $*"
    runs=$((runs + 1))
}
runs=0
for m in 100M 130M 160M 190M; do
    fits --memory $m
    fits --memory $m --direct off --huge off
    fits --memory $m --threads 8 --io-depth 32
done
fits --memory 130M --trunk-gb 60M
fits --memory 190M --spill on
# what the group leaves is what is planned for, and it is enough
for m in 60000000 90000000 150000000; do
    in_group $m k3-decode -q -m big --gen 4 --preset auto --report r.json <prompts >got && cmp want got && runs=$((runs + 1))
    [ "$(jsonq r.json plan budget_bytes)" -lt $m ] || echo "$(jsonq r.json plan budget_bytes) of $m"
done
k3-pack -q big
fits --memory 130M
fits --memory 160M --direct off
# without a plan that fits nothing is killed: it is refused
in_group 16000000 k3-decode -q -m big --memory 100M --gen 4 <prompts 2>err
echo "exit $?: $(grep -c 'not enough memory' err)"
# and the limit is a real one: who is told of more memory than the group has does not survive it
in_group 60000000 k3-decode -q -m big --mem-limit 1G --memory 150M --gen 4 <prompts >got 2>/dev/null
echo "exit $?"
echo "$runs runs, one answer"
