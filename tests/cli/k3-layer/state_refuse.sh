# SPDX-License-Identifier: Apache-2.0
# States that do not belong here: refused, left as they are.
. "$(dirname "$0")/npy.bash"
export K3_MODEL=$ODD/model
{ npy '<f4' '2, 104'; floats 208; } >x.npy
try() { k3-layer -q "$@" <x.npy >out.npy; echo "exit $?, $(wc -c <out.npy) bytes out"; }
try -l 0 --part attn --state s
cp s was
try -l 1 --part attn --state s
try -l 2 --part attn --state s
cp -r "$ODD/model" other && rm other/k3.index 2>/dev/null
sed 's/"routed_scaling_factor": 1.0/"routed_scaling_factor": 2.0/' "$ODD/model/config.json" >other/config.json
try -m other -l 0 --part attn --state s
head -c 1000 was >s; try -l 0 --part attn --state s
{ cat was; echo; } >s; try -l 0 --part attn --state s
: >s; try -l 0 --part attn --state s
cp x.npy s; try -l 0 --part attn --state s
{ head -c 3000 was; printf '\xa5'; tail -c +3002 was; } >s; try -l 0 --part attn --state s
rm s; mkdir s; try -l 0 --part attn --state s
ls
