# SPDX-License-Identifier: Apache-2.0
# closed and full streams, a reader that goes away, odd paths
. "${0%/*}/common"
model
for args in "ls -m m" "cat -m m model.embed_tokens.weight" "census m" "verify -q m" "check m" "ls --json -m m" "config m" "show -m m model.norm.weight" --help; do
    k3-index $args >/dev/full
    echo "$args: $?"
    k3-index $args >&-
    echo "$args: $?"
done
run k3-index build -q m <&-
(k3-index build m >&- <&- 2>&-; echo "exit $?")
(k3-index show -m m nothing 2>/dev/full; echo "exit $?")
k3-index ls -m m | head -n 1 >/dev/null
echo "${PIPESTATUS[0]}"
k3-index cat -m m model.embed_tokens.weight | head -c 1 >/dev/null
echo "${PIPESTATUS[0]}"
# the index goes to a full device
run k3-index build -q -m m --index /dev/full
mv m "$(printf 'a b\nc')"
k3-index build -q "$(printf 'a b\nc')"
run k3-index check "$(printf 'a b\nc')"
rm a*/model-00003*
run k3-index build -q "$(printf 'a b\nc')"
ls a*
