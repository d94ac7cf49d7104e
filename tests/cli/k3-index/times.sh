# SPDX-License-Identifier: Apache-2.0
# a shard's time before 1970 is printed as one number
. "${0%/*}/common"
model
s=m/model-00003-of-000015.safetensors
touch -d '1969-12-31 23:59:58.5 UTC' $s
k3-index build -q m
touch -d '1969-12-31 23:59:59.75 UTC' $s
run k3-index check m
