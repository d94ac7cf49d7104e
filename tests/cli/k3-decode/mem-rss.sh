# SPDX-License-Identifier: Apache-2.0
# The plan is a promise: the peak of resident memory is at most what was planned, and that at most the budget; where
# there is more to keep than fits, most of the budget is used. On the small models and one of 200 MB with full data.
# Would catch memory that no item of the plan counts: stacks, bounce buffers, huge pages, rows of logits, a second copy.
. "${0%/*}/mem-common"
case $(ldd "$(command -v k3-decode)") in *libasan* | *libtsan*) echo "memory under a sanitizer is another one"; exit 77 ;; esac

# holds MODEL PROMPT LEAST OPTION ...: at least LEAST hundredths of what was planned are used
holds() {
    local peak planned budget gen=(--gen 3)
    [[ " $* " != *" --score "* ]] || gen=()
    k3-decode -q -m "$1" "${gen[@]}" --report report.json "${@:4}" <"$2" >/dev/null || { echo "exit $? from $*"; return; }
    read -r peak planned budget < <(sed -n 's/^ *"\(peak_rss\|planned\|budget\)_bytes": \([0-9]*\),$/\2/p' report.json | paste -sd' ')
    [ "$peak" -le "$planned" ] || echo "$*: peak $peak, planned $planned"
    [ "$planned" -le "$budget" ] || echo "$*: planned $planned, budget $budget"
    [ "$peak" -ge $((planned / 100 * $3)) ] || echo "$*: only $peak of $planned are used"
    runs=$((runs + 1))
}

runs=0
echo 77 121 200 >short
seq -s' ' 10 110 >long
model tiny tiny
model odd odd
for m in tiny odd; do
    floor=$(planned -m $m --threads 2 --context 200 --memory 1)
    holds $m short 0 --threads 2 --context 200 --memory "$floor"
    holds $m long 0 --threads 2 --context 200 --memory "$floor"
    for o in --memory=16M --memory=24M --memory=1G --preset=ultra --preset=auto --threads=16 --io-depth=64 --chunk=100 \
        --logits=l.npy --huge=off --direct=off --tile=4Ki; do
        holds $m long 0 $o
    done
done

middle big
floor=$(planned -m big --threads 2 --context 200 --memory 1)
holds big short 0 --threads 2 --context 200 --memory "$floor"
holds big long 0 --threads 2 --context 200 --memory "$floor"
# Two tile buffers are both in use, whatever the speed of disk and arithmetic; of more, only as many are ever touched as
# reading is ahead of computing, and so less is asked of the runs after these.
two=(--ring 2 --io-depth 2 --chunk 16)
for m in 60M:76 100M:84 130M:86 160M:82; do
    for p in short long; do holds big $p "${m#*:}" "${two[@]}" --memory "${m%:*}"; holds big $p "${m#*:}" "${two[@]}" --memory "${m%:*}" --huge off; done
done
for m in 20M 40M 60M; do holds big short 40 --memory $m; holds big long 45 --memory $m; done
for o in "" --huge=off --direct=off --threads=16 --io-depth=64 --ring=3 --tile=1Mi --tile=64Ki --spill=off --logits=l.npy --cache-policy=lru; do
    holds big long 50 --memory 130M $o
done
# Three ids cannot fill a cache of experts: less is asked of the short prompt.
for m in 100M 160M; do holds big short 40 --memory $m; holds big long 50 --memory $m; done
holds big long 0 --memory 1G
holds big long 0 --trunk-gb 60M --cache-gb 20M
holds big long 0 --trunk-gb 0 --cache-gb 0
k3-pack -q big --tile 2Mi
holds big short 40 --memory 100M
holds big long 50 --memory 160M
k3-pack -q big -o small.trunk --tile 16Ki
holds big long 50 --memory 100M --trunk small.trunk
holds big long 0 --trunk-gb 10 --cache-gb 10
(cat short long; seq -s' ' 200 230; seq -s' ' 300 360; echo 5) >many
for m in 40M 100M 160M; do holds big many 45 --memory $m; done
holds big many 0 --memory 100M --batch 2
holds big many 0 --memory 100M --batch 5 --logits l.npy
holds big many 0 --memory 100M --draft 4
holds big many 0 --memory 60M --score
for m in 60M:78 100M:84 160M:82; do holds big many "${m#*:}" "${two[@]}" --memory "${m%:*}"; done
echo "$runs runs"
