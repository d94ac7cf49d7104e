# SPDX-License-Identifier: Apache-2.0
# a sweep of read size and depth: a row for each, rates in order, from a folder with a blank
mkdir "a b" && cp "$FIXTURES"/../../scripts/*.sh "a b" && cd "a b" || exit
head -c 3000000 /dev/urandom >"a file"
./disk-sweep.sh -o "o.tsv" -s 64Ki,4Ki,1000000 -d 1,3 -r 3 -t 0.02 "a file" >rows 2>err
code=$?
# not every file system has direct reads
grep -q 'page cache' err && [ $code -eq 1 ] || [ $code -eq 0 ] || { echo "exit $code"; cat err; }
cmp rows o.tsv
sed -n 1p rows
grep -c '^# .* usable cores' rows
grep -v '^#' rows | cut -f 1,2
grep -v '^#' rows | awk -F '\t' 'NR > 1 && !($4 > 0 && $4 <= $3 && $3 <= $5) { print "odd: " $0 }'
./disk-sweep.sh -r 0 "a file"
echo $?
./disk-sweep.sh
echo $?
./disk-sweep.sh -d 0 "a file"
echo $?
