# SPDX-License-Identifier: Apache-2.0
# Rounding errors of rows against numpy in float64: every tensor, means, worst rows; some rows only; kinds; odd values.
# same REFERENCE OURS: names, counts and rows alike, numbers to 1e-5 of themselves
same() {
    grep -v -e '^type' -e '	all	' "$2" | LC_ALL=C sort -k 3,3 | paste - <(LC_ALL=C sort -k 3,3 "$1") | awk -F '\t' '
        { for (i = 1; i <= 10; i++) { a = $i; b = $(i + 10); near = a - b <= 1e-5 * b && b - a <= 1e-5 * b
            if (i < 5 || i == 7 || i == 10 ? a != b : !near) print "differs: " $3 " " i " " a " " b } n++ }
        END { print n " tensors" }'
}
ln -s "$TINY/model" t
k3-layer -q quant-error -m t >all || echo "exit $?"
head -n 1 all
same "$TINY/expected/quant-error.tsv" all
k3-layer -q quant-error -m t --threads 3 | cmp - all
k3-layer -q quant-error -m "$ODD/model" --rows 5 >some || echo "exit $?"
same "$ODD/expected/quant-error-5.tsv" some
# the summary of a kind is that of its tensors, weighted by rows
awk -F '\t' '$3 != "all" && NR > 1 { n[$1] += $4; s[$1] += $4 * $8; if ($9 > w[$1]) w[$1] = $9 }
    $3 == "all" { d = s[$1] / n[$1] / $8; print $1, ($4 == n[$1] && d > 0.9999 && d < 1.0001 && $9 == w[$1] ? "adds up" : $0) }' all
# each row: the mean and the worst of them are what the other form says
k3-layer -q quant-error -m t -l 3 --each 'kv_b_proj' g_proj >each
head -n 1 each
grep kv_b each | awk -F '\t' '{ s += $6; if ($6 > w) { w = $6; row = $4 } } END { printf "%d rows, mean %.4f, worst %s in row %s\n", NR, s / NR, w, row }'
grep 'layers.3.*kv_b' all | awk -F '\t' '{ printf "%d rows, mean %.4f, worst %s in row %s\n", $4, $8, $9, $10 }'
k3-layer -q quant-error -m t -l 3 'model.layers.*.self_attn.?v_b_proj.weight' lm_head; echo "exit $?"
echo "a row of zeros, and one that is not finite:"
cp -r "$ODD/model" m && rm -f m/k3.index
read -r shard at < <(k3-index ls -q -m m lm_head | awk -F '\t' 'NR > 1 { print $5, $6 }')
cols=$(k3-index ls -q -m m lm_head | sed -n '2s/.*,\([0-9]*\)\].*/\1/p')
head -c $((cols * 2)) /dev/zero | dd of="m/$shard" bs=1 seek=$((at + cols * 2 * 3)) conv=notrunc status=none
k3-layer -q quant-error -m m --each lm_head | awk -F '\t' '$4 == 3'
printf '\x80\x7f' | dd of="m/$shard" bs=1 seek=$((at + cols * 2 * 4 + 6)) conv=notrunc status=none
k3-layer -q quant-error -m m lm_head >out 2>err; echo "exit $?"
sed 's/at byte [0-9]*/at byte N/' err
echo "checksums are kept to:"
cp -r "$ODD/model" c && k3-index build -q c && k3-index -q verify --write-sums -m c >/dev/null
printf '\1' | dd of="c/$shard" bs=1 seek=$((at + cols * 2 * 4 + 6)) conv=notrunc status=none
k3-layer -q quant-error -m c lm_head >/dev/null 2>err; echo "exit $?"
grep -c checksum err
for wrong in "-l 99" "--rows 0" "--rows x" "--tol 1" "nothing"; do
    # shellcheck disable=SC2086
    k3-layer -q quant-error -m t $wrong; echo "exit $?"
done
k3-layer quant-error; echo "exit $?"
k3-layer -q -m t -l 0 --each </dev/null; echo "exit $?"
