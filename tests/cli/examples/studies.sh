# SPDX-License-Identifier: Apache-2.0
# each study leaves a table that begins with its command and the machine
. "${0%/*}/common"
make -s -j1 REPEATS=2 GEN=3 DISK="-t 0.02 -s 64Ki -d 1,2" ROWS=5 FILE="$PWD/../tests/fixtures/tiny/model/tiktoken.model" huge noise rate quant >/dev/null || echo "exit $?"
head -c 3000000 /dev/urandom >"big file"
make -s REPEATS=2 DISK="-t 0.02 -s 64Ki -d 1,2" FILE="big file" disk >/dev/null 2>&1
for f in huge noise disk quant; do
    sed -n '1s/ .*\/\?examples.*//;1s/^# \([a-z0-9-]*[. ][a-z-]*\).*/\1/p' out/$f.tsv
    sed -n '2{/usable cores/!p}' out/$f.tsv
    grep -v '^#' out/$f.tsv | head -n 1 | cut -f 1-4
done
grep -v '^#' out/noise.tsv | awk -F '\t' 'NR == 2 { print split($13, run, ",") " runs" }'
grep -v '^#' out/huge.tsv | cut -f 1,11
# a row a round; the ratio is that of the two rates
grep -v '^#' out/rate.tsv | awk -F '\t' 'NR > 1 && !($1 / $2 > 0.99 * $3 - 0.001 && $1 / $2 < 1.01 * $3 + 0.001) { print "odd: " $0 } END { print NR - 1 " rounds" }'
