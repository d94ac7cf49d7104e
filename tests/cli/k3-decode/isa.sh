# SPDX-License-Identifier: Apache-2.0
# K3_ISA: an unknown set is misuse; empty means the best there is; the forced one is in the report.
export K3_MODEL=$ODD/model
echo 7 | K3_ISA=sse9 k3-decode -q --gen 2 2>err; echo "exit $?"; sed 's/: scalar.*//' err
echo 7 | K3_ISA=AVX2 k3-decode -q --gen 2 2>err; echo "exit $?"; sed 's/: scalar.*//' err
echo 7 | K3_ISA="" k3-decode -q --gen 2; echo "exit $?"
echo 7 | K3_ISA=scalar k3-decode -q --gen 2 --report r.json; jsonq r.json isa
