# SPDX-License-Identifier: Apache-2.0
# --count: ids of the text, or of each line
export K3_MODEL="$TINY/model"
printf 'Call me Ishmael.' | k3-tok encode --count
printf 'Call me Ishmael.\n\nsea\n' | k3-tok encode -l -c
printf '' | k3-tok encode -c
printf '' | k3-tok encode -l -c
printf '[EOS][EOS]' | k3-tok encode -c -s
