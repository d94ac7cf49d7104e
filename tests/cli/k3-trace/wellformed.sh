# SPDX-License-Identifier: Apache-2.0
# every JSON output parses, every SVG is well-formed
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
k3-trace synth -n 30 --prompt 3 --shape 5,1,32,4 --record lfu --slots 20 -o t.k3t
k3-trace synth -n 0 --shape 5,1,32,4 -o none.k3t
json() { python3 -c 'import json, sys; [json.loads(l) for l in sys.stdin] if sys.argv[1] == "lines" else json.load(sys.stdin)' "$1"; }
for f in t none; do
    k3-trace cat --json $f.k3t | json lines
    k3-trace hist $f.k3t | json one
    k3-trace info --json $f.k3t | json one
    k3-trace sim --json -p all $f.k3t | json one
    k3-trace sim --json -d 1G,2G $f.k3t | json one
    k3-trace sim --json --curve $f.k3t | json one
    k3-trace sim --json --budget 1G --trunk 1G $f.k3t | json one
    for k in curves heat both; do
        k3-trace plot -k $k -t 'a < b & c' $f.k3t | python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.stdin)'
    done
done
