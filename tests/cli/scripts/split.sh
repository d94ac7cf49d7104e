# SPDX-License-Identifier: Apache-2.0
# a sweep of trunk against cache under one budget: the same ids, what is given to the cache is taken from the trunk
nm "$(command -v k3-decode)" 2>/dev/null | grep -q __asan_init && { echo "a sanitizer takes memory of its own"; exit 77; }
mkdir "a b" && cp "$FIXTURES"/../../scripts/*.sh "a b" && cd "a b" || exit
./split-sweep.sh -m "$TINY/model" -o "s p" -n 4 -r 1 26M 10 50 90 0.003/0.001 >rows 2>err || { echo "exit $?"; cat err; }
cmp rows "s p.tsv"
grep -v '^#' rows | cut -f 2,11
grep -v '^#' rows | awk -F '\t' 'NR > 1 && $3 > $2 { print "odd: " $0 }
    NR > 2 && NR < 5 && ($8 <= pinned || $9 >= slots) { print "not divided: " $0 } { pinned = $8; slots = $9 }
    NR > 1 && NR < 5 { split($1, gb, "/"); sum = gb[1] + gb[2]; if (NR > 2 && (sum > total * 1.01 || sum < total * 0.99)) print "another total: " $0; total = sum }'
tail -n 1 rows | cut -f 1
# all of the trunk and no more: the rest goes to the cache
./split-sweep.sh -m "$TINY/model" -n 1 -r 1 60M 100 >rows || echo "exit $?"
tail -n 1 rows | awk -F '\t' '{ split($1, gb, "/"); print (gb[1] < 0.012 && gb[2] > 0.01) ? "capped" : $0 }'
for wrong in "" "26M 101" "26M x" "1"; do
    # shellcheck disable=SC2086
    ./split-sweep.sh -m "$TINY/model" $wrong 2>&1 | sed -E "s/[0-9.]+ MB are needed/N MB are needed/; s/--memory [0-9]+M/--memory NM/" >&2
    echo "${PIPESTATUS[0]}"
done
