# SPDX-License-Identifier: Apache-2.0
# On a terminal: how much, how fast, how long yet; the line is cleared in the end.
command -v script >/dev/null || { echo "no script(1) here"; exit 77; }
cp "$ODD/model/"* .
k3-index -q . >/dev/null
script -qec 'k3-pack . -o t' out >/dev/null
tr '\r' '\n' <out >lines
grep -c -q -E '^packed .*B of 2.12 MB \([0-9]+ %\), .*B/s, [0-9]+:[0-9][0-9] left' lines || cat -v out
printf '\33[Kk3-pack: t: 98 tiles' | cmp -n 21 - <(grep 'tiles, 2.38 MB' lines)
script -qec 'k3-pack -q . -o t' out >/dev/null
grep -v -E '^Script|^$' out
script -qec 'k3-pack check t' out >/dev/null
grep -c -E 'checked .* left' out
