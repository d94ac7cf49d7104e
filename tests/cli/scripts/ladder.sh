# a ladder of budgets: the same ids, peaks below the budgets, fewer bytes with more memory, from a folder with a blank
nm "$(command -v k3-decode)" 2>/dev/null | grep -q __asan_init && { echo "a sanitizer takes memory of its own"; exit 77; }
mkdir "a b" && cp "$FIXTURES/../../scripts/memory-ladder.sh" "a b" && cd "a b" || exit
./memory-ladder.sh -m "$TINY/model" -n 4 -r 2 -p "84 257 1255" 20M 24M 40M >rows 2>err || { echo "exit $?"; cat err; }
cmp rows ladder.tsv
cut -f 1,2,8 ladder.tsv
awk -F '\t' 'NR > 1 && ($3 > $2 || $5 > $4 || $4 > $6) { print "odd: " $0 } NR > 2 && $7 > last { print "more bytes: " $0 } { last = $7 }' ladder.tsv
grep -c '<rect' ladder.svg
./memory-ladder.sh -m "$TINY/model" 2>&1
echo $?
