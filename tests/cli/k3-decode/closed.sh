# SPDX-License-Identifier: Apache-2.0
# Closed standard descriptors are not mistaken for files.
export K3_MODEL=$ODD/model
k3-decode -q <&-; echo "exit $?"
echo 1 | k3-decode -q >&-; echo "exit $?"
echo 1 | k3-decode --gen 2 2>&-; echo "exit $?"
echo 1 | k3-decode -q --gen 2 --logits l.npy --report r.json 2>&-; echo "exit $?"
head -c 6 l.npy | tail -c 5; echo; jsonq r.json status
echo 1 | k3-decode -q --gen 2 --logits m.npy --report q.json >&- 2>&-; echo "exit $?"
jsonq q.json error
ls
