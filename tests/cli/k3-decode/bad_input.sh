# What is no id, or none of this vocabulary: exit 1 with line, place and value. What was answered before stays.
export K3_MODEL=$ODD/model
for p in 333 '1 333' 4294967296 18446744073709551617 99999999999999999999999999999 x '1 2x' -1 +1 1.5 '1,2' 0x1 $'1\v2' $'\xc3\xa9' 'a
b'; do
    printf '%s\n' "$p" | k3-decode -q --gen 2; echo "exit $?"
done
printf '1 \0 2\n' | k3-decode -q --gen 2; echo "exit $?"
printf '332\n7 7 7\n1 2 999\n5\n' | k3-decode -q --gen 2 --logits l.npy --report r.json; echo "exit $?"
jsonq r.json status
jsonq r.json error
jsonq r.json sequences 1 ids
ls
