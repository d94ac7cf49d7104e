# SPDX-License-Identifier: Apache-2.0
# The reader goes away: k3-decode ends with 0 and says nothing.
export K3_MODEL=$TINY/model
set -o pipefail
echo 1 2 3 | k3-decode -q --gen 40 | head -c 1; echo " exit ${PIPESTATUS[1]}"
printf '1\n2\n3\n' | k3-decode -q --gen 10 | head -n 1; echo "exit ${PIPESTATUS[1]}"
exec 3> >(:)
wait $!
echo 1 2 3 | k3-decode -q --gen 4 --report r.json --logits l.npy >&3; echo "exit $?"
jsonq r.json status
ls
