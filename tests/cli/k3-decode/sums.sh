# SPDX-License-Identifier: Apache-2.0
# --sums FILE: checksums that are not in the folder are compared with what is read; a named file must be there and fit.
# Would catch a name that is taken and not used.
. "${0%/*}/fault-common"
model tiny m
echo 77 121 700 >prompts
k3-index verify -q -m m --write-sums --sums my.sums >/dev/null
run() { k3-decode -q -m m --gen 2 "$@" <prompts; echo "exit $?"; }
run >want
run --sums my.sums | cmp - want
# one bit in a weight that every pass uses, the file's times as before
read -r file at < <(place model.layers.2.self_attn.g_proj.weight)
at=${at#from=} at=${at%% *} file=m/$file
touch -r "$file" stamp
byte=$(od -An -tu1 -j"$at" -N1 "$file")
printf "\\x$(printf %x $((byte ^ 16)))" | dd of="$file" bs=1 seek="$at" conv=notrunc status=none
touch -r stamp "$file"
run | tail -n 1
run --sums my.sums
run --sums gone.sums
run --sums m/config.json
