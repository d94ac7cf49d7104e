# SPDX-License-Identifier: Apache-2.0
# --pieces: ids, a tab, the piece in quotes; sequences end with an empty line
export K3_MODEL="$TINY/model"
printf 'Call me, 12345 "x"\\\t\n\n\302\205\303\251\360\237\230\200\377\0[EOS]' | k3-tok encode --pieces
printf '[EOS] a\nb\n' | k3-tok encode -p -l -s
