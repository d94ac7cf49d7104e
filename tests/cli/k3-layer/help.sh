# SPDX-License-Identifier: Apache-2.0
# Help and version go to stdout, with exit 0, and need no model.
unset K3_MODEL
k3-layer --help
k3-layer -l 0 -h | cmp - <(k3-layer --help)
k3-layer --version | sed "s, (commit .*,,"
k3-layer diff -V | sed "s, (commit .*,,"
