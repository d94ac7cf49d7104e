# SPDX-License-Identifier: Apache-2.0
# scripts/conformance.sh on the small model: against arrays, against a log of maxima and against bit patterns of logits as
# the released model's reference has them; a wrong value in each is found and named.
export K3_MODEL=$TINY/model
ids=$(for k in prompt_ids greedy_ids; do jsonq "$TINY/expected/expected.json" cases sea $k; done | tr '\n' ' ')
want=$TINY/expected/sea
mkdir -p 'a b/scripts' && cp "$FIXTURES/../../scripts/conformance.sh" 'a b/scripts' && cd 'a b' || exit
conformance=$PWD/scripts/conformance.sh
# The log and the JSON of the reference, from its arrays.
for l in $(seq 0 12); do
    k3-layer diff --json "$want.layers.npy:$l" "$want.layers.npy:$l" |
        sed 's/.*"largest": \([^,]*\).*/\1/' | awk -v l="$l" '{ printf "  L%-3d KDA MoE  44.7 s   |h| max %.6f\n", l, $1 }'
done >log
bits() { tail -c 8192 "$want.logits.npy" | od -An -v -tu4 | tr -s ' \n' ',' | sed 's/^,//; s/,$//'; }
echo "{\"prompt_ids\": [$(echo $ids | tr ' ' ',')], \"vocab\": 2048, \"logits_bits\": [$(bits)]}" >ref.json

"$conformance" --logits ref.json --log log --layers-npy "$want.layers.npy" --work kept | sed 's/\tmax [^\t]*//; s/\tlog [0-9.]*/\tlog/; s/by [0-9.e-]*/by */'
echo "exit $?, $(ls kept | wc -l) files kept"
"$conformance" --ids "$ids" --logits "$want.logits.npy" | tail -n 1
# A run that goes on from the arrays that are there; it belongs to one prompt.
"$conformance" --ids "$ids" --layers-npy "$want.layers.npy" --work kept --tol 1e-9 >out; echo "exit $?"
grep -c BEYOND out; tail -n 1 out
"$conformance" --ids "1 2" --layers-npy "$want.layers.npy" --work kept >out; echo "exit $?"
# Something wrong in each.
sed '/L12/s/max ./max 9/' log >log.bad; "$conformance" --ids "$ids" --log log.bad >out; echo "exit $?"; grep -c BEYOND out
sed 's/\[\([0-9]*\),/[\1,1/' ref.json | sed 's/_bits": \[[0-9]*/_bits": [0/' >bad.json
"$conformance" --ids "$ids" --logits bad.json >out; echo "exit $?"; grep -c BEYOND out
sed '/L12/d' log >log.short; "$conformance" --ids "$ids" --log log.short >out; echo "exit $?"
"$conformance" --ids "1 2 3" --logits "$want.logits.npy" >out; echo "exit $?"
"$conformance"; echo "exit $?"
"$conformance" --log log; echo "exit $?"
"$conformance" --log; echo "exit $?"
"$conformance" --bogus; echo "exit $?"
"$conformance" --ids 1 --log nowhere; echo "exit $?"
"$conformance" --help | head -n 2
