# SPDX-License-Identifier: Apache-2.0
# The file that does not belong is named, not those that do; many of a kind are a few lines.
. "${0%/*}/common"
model
: >m/model-00001-of-000002.safetensors
run k3-index check m 2>&1 | cut -c -150
rm m/model-00001-of-000002.safetensors
for i in 1 2 3 4 5 6 7; do : >m/model-0000$i-of-000020.safetensors; done
run k3-index check m 2>&1 | cut -c -150
rm m/*-of-000020*
cp m/model-00005-of-000015.safetensors m/model.safetensors
run k3-index check m 2>&1 | cut -c -90
rm m/model.safetensors
# a list of sizes without a last newline, and with CRLF
(cd m && stat -c '%n %s' model-*.safetensors) >sizes
head -c -1 sizes >"cut"
sed 's/$/\r/' sizes >crlf
run k3-index check -m m --sizes cut
run k3-index check -m m --sizes crlf
sed '$s/.$/x/' cut >bad
run k3-index check -m m --sizes bad 2>&1
{ printf '\357\273\277'; cat crlf; } >mark
run k3-index check -m m --sizes mark 2>&1
