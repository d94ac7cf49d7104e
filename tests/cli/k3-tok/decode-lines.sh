# SPDX-License-Identifier: Apache-2.0
# a line of ids is a line of text with escapes, or a JSON string
export K3_MODEL="$TINY/model"
printf 'a\\b\tc\r\nd\n' | k3-tok encode >ids
{ cat ids; echo; printf 'one' | k3-tok encode --json; printf 'two "2" é' | k3-tok encode; } >lines
k3-tok decode -l <lines | cat -A
k3-tok decode --json <lines
k3-tok decode -l --json <lines | cmp - <(k3-tok decode --json <lines)
# the escapes undone give the text that decode gives
printf '%b' "$(k3-tok decode -l <ids)" | cmp - <(k3-tok decode <ids)
# a line of text for each line of ids, a last one without newline too, and none for nothing
printf '97\n\n98' | k3-tok decode -l
printf '97\n\n98' | k3-tok decode --json
k3-tok decode -l </dev/null | wc -c
k3-tok decode --json </dev/null | wc -c
printf 'x\n\ny z\n' >text; k3-tok encode -l <text | k3-tok decode -l | cmp - text
# what is not UTF-8; a character that the end of a line or a read cuts
printf '255 97\n240 159\n152 128\n0 127 11\n' >odd
k3-tok decode -l <odd | od -An -c
k3-tok decode --json <odd
{ printf '240 159 '; sleep .1; printf '152 '; sleep .1; printf '128 1'; sleep .1; printf '0\n'; } | k3-tok decode --json
# special ids
k3-tok ids | grep -F -e '<|open|>' | cut -f1 >special
k3-tok decode --json <special
k3-tok decode --json --skip-special <special
# the text before a bad id is written, its line ended
printf '97\n98 99999999 97\n' | k3-tok decode -l; echo "$?"
printf '97\n98 x\n' | k3-tok decode --json; echo "$?"
