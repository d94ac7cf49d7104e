# SPDX-License-Identifier: Apache-2.0
# An index that is not of these shards: exit 1 before anything is written.
cp -r "$ODD/model" m
k3-index -q m >/dev/null
printf 'x' >>m/model-00003-of-000009.safetensors
k3-pack m
echo $?
ls m | grep -c trunk
true
