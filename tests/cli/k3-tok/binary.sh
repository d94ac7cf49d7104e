# SPDX-License-Identifier: Apache-2.0
# --binary: 32-bit little-endian words both ways
export K3_MODEL="$TINY/model"
printf 'Call me Ishmael.' | k3-tok encode --binary | od -An -tu4 -v
printf 'Call me Ishmael.' | k3-tok encode -b | k3-tok decode -b
echo
printf '' | k3-tok encode -b | od
printf '\001\000\000\000\000\007' | k3-tok decode -b | od -An -tx1; echo "${PIPESTATUS[1]}"
printf 'a\000\000\000\000\010\000\000b\000\000\000' | k3-tok decode -b; echo " ${PIPESTATUS[1]}"
