# SPDX-License-Identifier: Apache-2.0
# What is no id, or none of this vocabulary: exit 1 with line, place and value. What was answered before stays.
export K3_MODEL=$ODD/model
for p in 333 '1 333' 4294967296 18446744073709551617 99999999999999999999999999999 x '1 2x' -1 +1 1.5 '1,2' 0x1 $'1\v2' $'\xc3\xa9' 'a
b'; do
    printf '%s\n' "$p" | k3-decode -q --gen 2; echo "exit $?"
done
printf '1 \0 2\n' | k3-decode -q --gen 2; echo "exit $?"
# What was answered stays; the report names the error, and the logits file does not appear.
coproc D { k3-decode -q --gen 2 --logits l.npy --report r.json; }
to=${D[1]} from=${D[0]} pid=$D_PID
for p in 332 '7 7 7'; do
    echo "$p" >&"$to" && read -r answer <&"$from" && echo "$p: $answer"
done
printf '1 2 999\n5\n' >&"$to"
wait "$pid"; echo "exit $?"
jsonq r.json status
jsonq r.json error
jsonq r.json sequences 1 ids
ls
