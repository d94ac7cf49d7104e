# SPDX-License-Identifier: Apache-2.0
# Ended in the middle: scratch that is full or fails, a signal, a kill. Never a wrong id, never a file that looks finished.
# Would catch state that is lost where it could not be written, a report or logits put in place by a run that was
# interrupted, and temporaries left by a signal.
. "${0%/*}/fault-common"
model tiny m
echo 77 121 700 1015 >prompts
k3-decode -q -m m --gen 4 --threads 1 --logits want.npy <prompts >want
mkdir scratch
spill=(--spill on --scratch scratch --trunk-gb 0 --cache-gb 0)

echo "== scratch: no space at the start, none later, failing writes and reads, no folder, memory instead of a disk"
fails "alloc (deleted) ENOSPC" "${spill[@]}"
fails "write (deleted) ENOSPC" "${spill[@]}"
fails "write (deleted) after=12 EIO" "${spill[@]}"
fails "read (deleted) EIO" "${spill[@]}"
fails "read (deleted) after=11 EIO" "${spill[@]}"
fails "read (deleted) after=3 short=0" "${spill[@]}"
fails "" "${spill[@]}" --scratch nowhere
if [ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ]; then fails "" "${spill[@]}" --scratch /dev/shm; else
    printf 'k3-decode: /dev/shm: scratch space must be on a disk, this is memory (tmpfs); use --scratch DIR\nexit 2 after 0 ids\n'
fi
recovered=0
recovers "write (deleted) short=512; read (deleted) short=1024" "${spill[@]}"
recovers "write (deleted) times=9 EINTR; read (deleted) times=9 EINTR" "${spill[@]}"
TMPDIR=$PWD/scratch recovers "" --spill on
echo "$recovered recovered; left in the folder: $(find scratch -type f | wc -l)"

# stopped SIGNAL WHEN: by a signal at that read of one matrix, which comes once a pass; what is left then
matrix="read $(place model.layers.2.self_attn.g_proj.weight)"
stopped() {
    rm -f report.json got.npy trace.k3t
    with "$matrix after=$2 $1" k3-decode -m m --gen 4 --threads 1 --logits got.npy --report report.json --trace trace.k3t \
        --trunk-gb 0 --cache-gb 0 --ring 2 <prompts >got 2>err
    echo "$1: exit $? after $(wc -w <got) ids"
    [[ "$(cat want)" == "$(cat got)"* ]] || { echo "wrong ids:"; cat got; }
    grep -o '^k3-decode: interrupted after [0-9]* ids' err
    [ ! -e report.json ] || echo "report: $(jsonq report.json error), status $(jsonq report.json status), $(jsonq report.json generated_tokens) ids"
    [ ! -e got.npy ] || { echo "logits" && cmp -n $(($(stat -c %s got.npy) - 128)) -i 128 got.npy want.npy; }
    [ ! -e trace.k3t ] || echo "trace of $(k3-trace cat trace.k3t | awk '!/^#/ && !seen[$3]++' | wc -l) positions"
}
echo "== a signal: what the run came to and a short report, then death by it"
stopped SIGINT 0
find . -name '*.tmp*'
stopped SIGINT 2
find . -name '*.tmp*'
echo "== a kill: nothing but temporaries"
stopped SIGKILL 0
stopped SIGKILL 2
find . -name '*.tmp*' | grep -c .
