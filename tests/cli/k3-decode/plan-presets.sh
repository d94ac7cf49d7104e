# SPDX-License-Identifier: Apache-2.0
# The plan of the released model for every preset, on a machine and disk that are given. Needs nothing but its config.
# Would catch memory left out of the sum, and bytes of a step that are not those of the model.
[ -n "${K3_REAL:-}" ] || { echo "K3_REAL is not set"; exit 77; }
mkdir real && cp "$K3_REAL/config.json" real
plan() { k3-decode -m real --plan --disk-rate 5G --threads 8 "$@"; }
for p in $(k3-decode --list-presets | sed 1d | cut -d' ' -f1); do
    echo "== $p"
    plan --preset "$p" --mem-limit 256G
done
echo "== one byte"
plan --memory 1 --mem-limit 256G
echo "exit $?"
echo "== a preset for a larger machine"
plan --preset workstation --mem-limit 64G
echo "exit $?"
# each on the machine that the list of presets says it is for
for p in laptop:8G desktop:32G workstation:96G server:192G max:256G; do
    plan --preset "${p%:*}" --mem-limit "${p#*:}" >plan.txt || echo "${p%:*} does not fit ${p#*:}"
done
