# SPDX-License-Identifier: Apache-2.0
# plot: well-formed SVG of every kind, to a file or standard output
k3-trace synth -n 30 --shape 9,1,64,4 -o t.k3t
for k in curves heat both; do
    k3-trace plot -k $k t.k3t >$k.svg
    echo $k "$(grep -c '<polyline' $k.svg)" "$(grep -c '<rect' $k.svg)"
done
k3-trace plot -o both.2 t.k3t && cmp both.svg both.2
k3-trace plot -p all -u -w 3 --seed 2 --threads 1 -t 'a < b & c' t.k3t | grep -o 'a &lt; b &amp; c'
k3-trace synth -n 0 --shape 5,1,32,4 | k3-trace plot | tail -n 1
k3-trace plot -o no/such/folder t.k3t 2>&1
echo $?
# few experts: each used one is a column of its own, however rare, and no two texts of a side overlap
for shape in 13,1,32,4 3,1,5,2 41,1,60,4 93,1,896,16; do
    k3-trace synth -n 20 --shape $shape -o few.k3t
    cells=$(k3-trace plot -k heat few.k3t | grep -c '<rect x="[0-9]*" y="[0-9]*" width="[0-9]*" height="[0-9]*" fill="#[0-9a-f]*"/>')
    IFS=, read -r _ _ experts _ <<<"$shape"
    [ "$experts" -gt 64 ] || [ $((cells - 2)) = "$(k3-trace hist --tsv few.k3t | grep -c '^[0-9]')" ] || echo "$shape: $cells cells"
    k3-trace plot few.k3t | sed -n 's/^<text x="\([0-9.]*\)" y="\([0-9.]*\)" text-anchor="end">.*/\1 \2/p' |
        awk -v s="$shape" 'NR > 6 && at && $2 < at + 11 { print s ": layer numbers overlap at " $2 } NR > 6 { at = $2 }'
    k3-trace plot few.k3t | sed -n 's/^<text x="[0-9.]*" y="\([0-9.]*\)".*>\(one token.s set\|first use\).*/\1/p' |
        awk -v s="$shape" '{ y[NR] = $1 } END { if (NR != 2 || (y[1] - y[2]) ^ 2 < 144) print s ": the notes overlap" }'
done
