# SPDX-License-Identifier: Apache-2.0
# help and version go to standard output
k3-index --help
k3-index -hV | head -n 1
k3-index build --version | sed "s, (commit .*,,"
k3-index -V | sed "s, (commit .*,,"
