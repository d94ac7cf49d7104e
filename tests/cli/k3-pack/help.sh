# SPDX-License-Identifier: Apache-2.0
k3-pack --help
k3-pack check -h | cmp - <(k3-pack --help)
k3-pack --version | sed "s, (commit .*,,"
