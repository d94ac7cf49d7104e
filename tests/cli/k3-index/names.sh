# SPDX-License-Identifier: Apache-2.0
# a tab, a line feed and an escape in an ignored name leave the table whole
. "${0%/*}/common"
model
rm m/k3.index
shard m/model-00015-of-000015.safetensors '{"a\tb\nc\u001b[1m\u00e9":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"e":{"dtype":"F64","shape":[2,0],"data_offsets":[1,1]}}' 1
k3-index build -q m
k3-index ls -m m | tail -n 2
k3-index ls -m m --json c | tail -n 2
k3-index show -m m "$(printf 'a\tb\nc\033[1m\303\251')"
k3-index show -m m e
k3-index cat -m m e | od -An -c | sed -n '/(/,$p' | tr -d ' \n' | cut -c 1-60
k3-index verify -q m
