# SPDX-License-Identifier: Apache-2.0
# npy DTYPE SHAPE: the header of a .npy array; the data follows. floats N: N times 1.0f.
npy() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '$1', 'fortran_order': False, 'shape': ($2), }"; }
floats() { for _ in $(seq "$1"); do printf '\0\0\x80\x3f'; done; }
