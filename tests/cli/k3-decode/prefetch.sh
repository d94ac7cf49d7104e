# SPDX-License-Identifier: Apache-2.0
# However weights are read from memory: the same ids and the same bits; the report says how.
export K3_MODEL=$ODD/model
echo 1 76 9 332 0 255 128 7 7 200 >ids
k3-decode -q --gen 4 --stop-id none --logits want.npy --report r.json <ids >want || exit
jsonq r.json prefetch from
for way in none t0 nta none,1,1 t0,64,2 t0,16Ki,4 nta,1Mi,8 auto; do
    k3-decode -q --gen 4 --stop-id none --logits got.npy --prefetch $way --report r.json <ids >got || echo "$way: exit $?"
    cmp got.npy want.npy
    cmp got want
    [ "$way" = auto ] || [ "$(jsonq r.json prefetch hint)" = "${way%%,*}" ] || echo "$way: not in the report"
done
jsonq r.json prefetch from
k3-decode -q --gen 1 --prefetch nta,1Mi,8 --report r.json <ids >got
for field in hint distance streams from; do jsonq r.json prefetch $field; done
for way in T0 t1 "" "none," nta,0 nta,2Mi t0,64,9 t0,64,2,1; do
    k3-decode -q --gen 1 --prefetch "$way" <ids >got 2>err
    echo "\"$way\": exit $?, $(wc -l <err) line"
done
