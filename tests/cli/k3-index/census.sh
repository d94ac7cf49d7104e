# SPDX-License-Identifier: Apache-2.0
# where the bytes are; the classes add up to the text model
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
. "${0%/*}/common"
model
k3-index census m
k3-index census -m m --json | python3 -c '
import json, sys
c = json.load(sys.stdin)
for k in "tensors", "bytes", "parameters":
    print(k, c["text"][k] == sum(v[k] for n, v in c["classes"].items() if n != "ignored"))
print(c["experts"], c["expert_bytes"], c["trunk_bytes"], c["always_active_parameters"], c["classes"]["routed"]["bits_per_weight"])'
k3-index census "$ODD/model" -q | tail -n 3
