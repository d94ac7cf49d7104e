# SPDX-License-Identifier: Apache-2.0
# a ladder of budgets: the same ids, peaks below the budgets, fewer bytes with more memory, from a folder with a blank
nm "$(command -v k3-decode)" 2>/dev/null | grep -q __asan_init && { echo "a sanitizer takes memory of its own"; exit 77; }
mkdir "a b" && cp "$FIXTURES"/../../scripts/*.sh "a b" && cd "a b" || exit
./memory-ladder.sh -m "$TINY/model" -n 4 -r 2 -p "84 257 1255" 20M 24M 40MB >rows 2>err || { echo "exit $?"; cat err; }
cmp rows ladder.tsv
sed -n '1s/-m .* -n/-m MODEL -n/p' ladder.tsv
grep -v '^#' ladder.tsv | cut -f 1,2,11
# peak <= budget; min <= median <= max; two runs, medians between them; bytes fall
grep -v '^#' ladder.tsv | awk -F '\t' 'NR > 1 && ($3 > $2 || $3 < 1e6 || $5 > $4 || $4 > $6 || split($13, run, ",") != 2) { print "odd: " $0 }
    NR > 2 && $7 > last { print "more bytes: " $0 } { last = $7 }'
grep -c 'class="bar"' ladder.svg
echo "a row with other ids:"
./campaign.sh -m "$TINY/model" -n 4 -r 1 "whole: --threads 1" "two layers & less: --layers 2" >rows
echo $?
grep -v '^#' rows | cut -f 1,2,11,12
grep -o 'two layers[^<]*' campaign.svg
echo "--help:"
for f in memory-ladder campaign split-sweep disk-sweep limit-memory conformance download-model; do ./$f.sh --help | head -n 1 | cut -c 1-30; done
echo "misuse:"
./memory-ladder.sh -m "$TINY/model"
echo $?
./campaign.sh -m "$TINY/model" -r 0 "a: -q"
echo $?
./campaign.sh -m "$TINY/model" "a"
echo $?
./campaign.sh -m "$TINY/model" "a: --frob"
echo $?
