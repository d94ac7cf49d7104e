# SPDX-License-Identifier: Apache-2.0
# One answer at every budget, from the least that is accepted to more than everything; a byte less is refused.
# Would catch a plan that promises a run that cannot be made, and state, activations or tiles cut short where memory is.
. "${0%/*}/mem-common"

walk() {
    local floor s
    floor=$(planned -m "$1" --threads 1 --context 64 --memory 1)
    for s in "$floor" $((floor + 1)) $((floor + 4096)) 14M 15M 17M 21M 25M 40M 1G; do same --context 64 --memory "$s"; done
    for s in ultra laptop auto; do same --preset $s; done
    k3-decode -q -m "$1" --threads 1 --context 64 --memory $((floor - 1)) <prompts 2>err
    echo "a byte less: exit $?"
}
both walk --gen 4
