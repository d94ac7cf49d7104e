# SPDX-License-Identifier: Apache-2.0
# closed and full standard streams, and a reader that goes away
export K3_MODEL="$TINY/model"
cat "$TINY"/model/*.safetensors >bytes
k3-tok encode <&-; echo "stdin closed: $?"
k3-tok decode <&-; echo "stdin closed: $?"
k3-tok encode <bytes >&-; echo "stdout closed: $?"
echo 97 | k3-tok decode >&-; echo "stdout closed: $?"
k3-tok ids >&-; echo "stdout closed: $?"
k3-tok --help >&-; echo "stdout closed: $?"
k3-tok encode <bytes >/dev/full; echo "stdout full: $?"
echo 97 | k3-tok decode >/dev/full; echo "stdout full: $?"
k3-tok ids >/dev/full; echo "stdout full: $?"
echo 9999 | k3-tok decode 2>&-; echo "stderr closed: $?"
printf sea | k3-tok encode 2>&-; echo "stderr closed: $?"
k3-tok encode <.; echo "stdin a folder: $?"
{ k3-tok encode <bytes; echo "reader gone: $?" >&2; } | head -c 1; echo
k3-tok encode <bytes >ids
{ k3-tok decode <ids; echo "reader gone: $?" >&2; } | head -c 1 | wc -c
