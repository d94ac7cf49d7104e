# SPDX-License-Identifier: Apache-2.0
# A shard that is written to while the run reads it: exit 1 with its name, and no file of the run is left. One that only
# lies there as it was is no reason to fail. Would catch a success that rests on two sets of weights.
. "${0%/*}/fault-common"
model tiny m
shard=m/model-00004-of-000015.safetensors
cp $shard saved
echo 77 121 700 >prompts
mkfifo to from
k3-decode -q -m m --converse --gen 1 --stop-id none --slow-reads 100 --logprobs p.tsv <to >from 2>err &
exec 3>to 4<from
echo 77 121 >&3
read -r _ <&4
dd if=saved of=$shard bs=4096 count=1 conv=notrunc status=none # the same bytes: what was computed tells nothing
exec 3>&-
wait $!; echo "exit $?"
cat err
ls p.tsv* 2>/dev/null
k3-decode -q -m m --gen 1 <prompts >/dev/null; echo "exit $?"
