# SPDX-License-Identifier: Apache-2.0
# --json: an array a sequence, a list of the specials; a strict reader takes both
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
export K3_MODEL="$TINY/model"
printf 'Call me Ishmael.' | k3-tok encode --json
printf 'a\n\nbc\n' | k3-tok encode --json -l
printf '' | k3-tok encode --json
k3-tok ids --json | python3 -c 'import json, sys
ids = json.load(sys.stdin)
print(len(ids), ids[0], ids[8], sum(i["named"] for i in ids))'
