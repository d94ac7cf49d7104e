# SPDX-License-Identifier: Apache-2.0
# encode -l: a line is a text without its newline; a missing last newline changes nothing; no line, no output
export K3_MODEL="$TINY/model"
printf 'Call me Ishmael.\n\n a\r\nnul\0byte\nlast' | k3-tok encode -l
echo --
printf 'last\n' | k3-tok encode --lines
echo --
printf '' | k3-tok encode -l
echo --
printf '\n' | k3-tok encode -l
# each line as if alone
printf 'The whale\nthe sea\n' | k3-tok encode -l >both
{ printf 'The whale' | k3-tok encode; printf 'the sea' | k3-tok encode; } | cmp - both
