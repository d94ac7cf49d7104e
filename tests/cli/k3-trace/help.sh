# SPDX-License-Identifier: Apache-2.0
# help on standard output, for the program and every command; version
k3-trace --help
k3-trace -V | sed "s, (commit .*,,"
for c in info cat hist cut merge import export sim plot synth verify; do
    k3-trace $c --help | head -n 1 || exit
done
