# SPDX-License-Identifier: Apache-2.0
# One answer whatever the switches of the machine: direct reads, huge pages, scratch, slow reads, chunks, threads and
# instruction sets. Would catch state lost on its way through the scratch file, a result that depends on when a read
# ends, and a sum whose order depends on the cut of a prompt.
. "${0%/*}/mem-common"

walk() {
    local trunk=$2 all=$(($3 * $4)) s
    local -a stream=(--trunk-gb 0 --cache-gb 0)
    for s in --direct=off --direct=on --huge=off --huge=on --spill=on --spill=off --threads=2 --threads=3; do
        same "${stream[@]}" $s
        same --trunk-gb $((trunk / 2))B --cache-gb $((all / 2))B $s
    done
    same --spill on --chunk 1 "${stream[@]}"
    same --spill on --chunk 5
    same --slow-reads 200 --tile 1Mi "${stream[@]}"
    same --slow-reads 200 --ring 2 --io-depth 1 --chunk 64 "${stream[@]}"
    same --slow-reads 500 --tile 64Ki --trunk-gb $((trunk / 2))B --cache-gb $((all / 2))B
    for s in 1 2 5 7 64; do same --chunk $s "${stream[@]}"; done
    for s in scalar avx2 avx512 avx512vbmi2 neon; do
        K3_ISA=$s k3-decode -q -m "$1" </dev/null 2>/dev/null || { same_runs=$((same_runs + 1)); continue; }
        K3_ISA=$s same "${stream[@]}" --tile 64Ki
    done
    # every line longer than the one before: all is opened anew for more positions
    mv prompts short
    (head -n 1 want; cat short) | tac >prompts
    k3-decode -q -m "$1" <prompts >want
    while IFS= read -r s; do k3-decode -q -m "$1" <<<"$s"; done <prompts >got
    cmp want got
}
both walk --gen 4
