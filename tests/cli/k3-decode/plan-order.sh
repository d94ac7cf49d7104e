# SPDX-License-Identifier: Apache-2.0
# Of --memory, presets and sizes the later one wins; what is not given is planned. No option is forgotten.
. "${0%/*}/mem-common"
model tiny m
# amount VALUE GIVEN ALL: in words, where the number is the planner's
amount() {
    case $1 in 0) echo none ;; "$2") echo "$2" ;; *) [ "$1" -ge "$3" ] && echo all || echo some ;; esac
}
# shows OPTION ...: budget, pinned, expert slots, whether the state is in scratch
shows() {
    k3-decode -m m --plan --json --disk-rate 5G --mem-limit 10G --threads 1 "$@" >plan.json || return
    echo "$*: of $(jsonq plan.json budget_bytes) pins $(amount "$(jsonq plan.json memory "pinned tiles")" 1000000 4649744)," \
        "slots $(amount "$(jsonq plan.json expert_slots)" 10 384), scratch $(jsonq plan.json spill)"
}
shows
shows --memory 20M
shows --preset ultra
shows --preset laptop
shows --preset auto
shows --preset ultra --memory 20M
shows --memory 20M --preset ultra
shows --preset laptop --memory 20M
shows --memory 20M --preset laptop
shows --memory 20M --preset auto
shows --preset ultra --preset laptop
shows --preset laptop --preset ultra
shows --preset laptop --trunk-gb 1M
shows --preset laptop --cache-gb 163840B
shows --trunk-gb 1M --preset laptop
shows --trunk-gb 1M
shows --cache-gb 163840B
shows --cache-gb 0
shows --trunk-gb 0
shows --trunk-gb 0 --cache-gb 0
shows --memory 20M --trunk-gb 1M
shows --trunk-gb 1M --memory 20M
shows --memory 20M --cache-gb 163840B
shows --spill on --memory 18M
shows --preset ultra --spill off
shows --spill off --preset ultra

echo "== two devices: the next byte goes where it saves most time"
devices() {
    k3-decode -m m --plan --json --mem-limit 10G --threads 1 --memory 22M --disk-rate "$1" >plan.json || return
    [ "$(jsonq plan.json memory "pinned tiles")" -ge "$(jsonq plan.json memory "expert cache")" ] && echo "$1: tiles" || echo "$1: experts"
}
devices 5G,5G
devices 5G,50M
devices 50M,5G

echo "== presets that there are"
k3-decode --list-presets
k3-decode --list-presets --json | jsonq - 1 trunk_gb
k3-decode -m m --preset no || echo "exit $?"
