# SPDX-License-Identifier: Apache-2.0
# a line of ids may be a JSON array, as encode --json prints it; k3-decode reads the same
export K3_MODEL="$TINY/model"
printf 'The sea.\nThe whale' | k3-tok encode -l --json >arrays
head -c 1 arrays; echo
tr -d '\n' <arrays | wc -l
k3-tok decode <arrays; echo
printf 'The sea' | k3-tok encode --json >one
k3-decode -q --gen 2 <one | cmp - <(printf 'The sea' | k3-tok encode | k3-decode -q --gen 2)
printf '[1, 2\n' | k3-decode -q --gen 2
echo "$?"
printf '\357\273\2771 2\n' | k3-tok decode
echo "$?"
# names of files and options are quoted printably, whatever they hold
export LC_ALL=C
k3-tok "$(printf 'a\302\2331m\233\357\342\200\256')"
k3-index check "$(printf 'no\302\205\357\273\277\377such')"
exit 0
