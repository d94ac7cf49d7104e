# SPDX-License-Identifier: Apache-2.0
# what is no id of the vocabulary: exit 1, the place named, everything before it written
export K3_MODEL="$TINY/model"
try() { printf '%b' "$1" | k3-tok decode; echo " -> ${PIPESTATUS[1]}"; }
try '67 471 2047'
try '67 471\n480 2048 99'
try '67 -1'
try '67 12x'
try '1.5'
try '67,471'
try '67 4294967296'
try '67 99999999999999999999999999999'
try '67 240 159 9999'
try '0x43'
try '67 1\x002' # NUL, which ends a string in C
