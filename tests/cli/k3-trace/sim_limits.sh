# SPDX-License-Identifier: Apache-2.0
# sim without enough memory or threads: status 3 and one line of ours, whatever thread it happened in
(ulimit -v 80000; k3-trace --version >/dev/null 2>&1) || { echo "memory cannot be limited here"; exit 77; } # AddressSanitizer
k3-trace synth -n 30 --shape 40,1,896,16 -o t.k3t
k3-trace sim --threads 4 -p lfu,s3fifo,pin,belady -s 100,1000,3000 t.k3t >whole.txt
least=8000
until (ulimit -v $least; k3-trace --version >/dev/null 2>&1); do least=$((least + 1000)); done
refused=0
for more in 0 500 1000 2000 4000 8000 16000 24000 32000 48000 64000 96000; do
    (ulimit -v $((least + more)); k3-trace sim --threads 4 -p lfu,s3fifo,pin,belady -s 100,1000,3000 t.k3t >out.txt 2>why)
    status=$?
    if [ $status -eq 0 ]; then
        cmp out.txt whole.txt
    else
        refused=$((refused + 1))
        [ $status -eq 3 ] && [ "$(wc -l <why)" -eq 1 ] && grep -q '^k3-trace: .*\(memory\|thread\)' why || { echo "+$more KB: status $status" && cat why; }
    fi
done
[ $refused -ge 3 ] || echo "only $refused were refused"
