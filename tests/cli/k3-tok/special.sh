# SPDX-License-Identifier: Apache-2.0
# a name in the text is text unless --special; decode prints names unless --skip-special
export K3_MODEL="$TINY/model"
text='<|open|>a<|end_of_msg|>[EOS]<|reserved_token_2000|><|reserved_token_5|>'
printf '%s' "$text" | k3-tok encode
printf '%s' "$text" | k3-tok encode --special
printf '%s' "$text" | k3-tok encode -s | k3-tok decode; echo
printf '%s' "$text" | k3-tok encode -s | k3-tok decode --skip-special; echo
# all 256 come back from their names
k3-tok ids | tail -n +2 >list
cut -f 1 list | tr '\n' ' ' | sed 's/ $/\n/' >numbers
cut -f 2 list | tr -d '\n' | k3-tok encode -s | cmp - numbers
k3-tok decode <numbers | cmp - <(cut -f 2 list | tr -d '\n')
k3-tok decode --skip-special <numbers | wc -c
wc -l <list
