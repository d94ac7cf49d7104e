# SPDX-License-Identifier: Apache-2.0
k3-tok --help
k3-tok -V | sed "s, (commit .*,,"
k3-tok encode -h | cmp - <(k3-tok --help)
