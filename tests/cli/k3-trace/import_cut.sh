# SPDX-License-Identifier: Apache-2.0
# A foreign file cut at any byte is refused, or said to end in the middle of a step. Only between two steps is nothing
# missing that the format could show; oracleGeneral shows that, too.
shape="--shape 3,1,4,2"
k3-trace synth flat -n 1 --prompt 2 $shape | k3-trace export -f csv >whole.csv
k3-trace synth flat -n 2 $shape -o t.k3t
for f in pairs oracle; do k3-trace export -f $f t.k3t >whole.$f; done
for f in csv pairs oracle; do
    k3-trace import -q -f $f $shape whole.$f | k3-trace cat >whole.txt
    size=$(stat -c %s whole.$f)
    for ((n = 0; n < size; n++)); do
        head -c $n whole.$f | k3-trace import -f $f $shape >cut.k3t 2>why
        status=$?
        [ $status -eq 1 ] && [ -s why ] && continue
        [ $status -eq 0 ] || echo "$f cut at $n: status $status"
        k3-trace cat cut.k3t >cut.txt
        { [ "$(wc -l <cut.txt)" -lt "$(wc -l <whole.txt)" ] && cmp -n "$(stat -c %s cut.txt)" cut.txt whole.txt; } || echo "$f cut at $n: other choices"
        [ -s why ] || echo "$f cut at $n: taken for $(cut -f 1 -d ' ' cut.txt | sort -u | wc -l) step(s)"
    done
done
