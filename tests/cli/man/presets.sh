# SPDX-License-Identifier: Apache-2.0
# The table of presets in k3-decode(1) holds what the program prints for the released model.
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
mkdir real && cp "$K3_REAL/config.json" real
for p in $(k3-decode --list-presets | sed 1d | cut -d' ' -f1); do
    k3-decode -m real --plan --disk-rate 5G --mem-limit 256G --threads 8 --preset "$p" >plan || echo "$p: exit $?"
    awk -v name="$p" '/^memory:/ { planned = $2 " " $3 } /^  pinned tiles/ { pins = $3 " " $4 } /^  expert cache/ { cache = $3 " " $4 }
        /^a decode step reads/ { reads = $5 " " $6 } /^predicted:/ { seconds = $2 " s" }
        END { printf "%-12s %10s %10s %10s %10s %8s\n", name, planned, pins ? pins : "none", cache ? cache : "none", reads, seconds }' plan
done >printed
sed -n '/^PRESET  /,/^\.Ed/p' "${0%/*}/../../../man/k3-decode.1" | grep -v '^PRESET\|^\.Ed' | diff printed - >differs || cat differs
