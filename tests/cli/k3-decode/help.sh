# SPDX-License-Identifier: Apache-2.0
# Help and version need no model, go to stdout and end with 0, wherever they stand; what is asked for in the text works.
unset K3_MODEL
k3-decode --help | head -n 1
k3-decode --gen 3 -h | cmp - <(k3-decode --help)
k3-decode -V | sed "s, (commit .*,,"
k3-decode --help >/dev/full; echo "exit $?"
k3-decode --help | head -c 1 >/dev/null; echo "exit ${PIPESTATUS[0]}"
