# SPDX-License-Identifier: Apache-2.0
# One line in, one line out: several prompts, empty ones, blanks of every kind, a last line without its newline.
export K3_MODEL=$ODD/model
one() { echo "$1" | k3-decode -q --gen 3; }
printf '7 7 7\n\n200\n' | k3-decode -q --gen 3 >all; echo "exit $?"
{ one '7 7 7'; echo; one 200; } | cmp - all && cat all
printf '7 7 7\n\n200' | k3-decode -q --gen 3 | cmp - all
printf '\t7  7\t 7 \r\n  \r\n 200 \n' | k3-decode -q --gen 3 | cmp - all
printf '007 0000000007 7\n\n200\n' | k3-decode -q --gen 3 | cmp - all
printf '\n\n\n' | k3-decode -q --gen 3 | wc -l
: | k3-decode -q | wc -c
printf '7 7 7\n200\n' | k3-decode -q --gen 0 | od -c
# 8 ids if not told.
echo 7 | k3-decode -q | wc -w
# The prompt alone does not count: a run of many, each on its own.
for i in 1 2 3 4 5; do one "$i"; done >want
printf '1\n2\n3\n4\n5\n' | k3-decode -q --gen 3 | cmp - want
# An answer comes when its line is complete, before the input ends.
coproc D { k3-decode -q --gen 3; }
to=${D[1]} from=${D[0]} pid=$D_PID
for p in '7 7 7' 200; do
    echo "$p" >&"$to"
    read -r answer <&"$from" && echo "$p: $answer"
done
exec {to}>&-
wait "$pid"; echo "exit $?"
