# SPDX-License-Identifier: Apache-2.0
# sixteen processes in one pipe are the model, bit for bit, and each layer is the reference's; a wrong reference is noticed
. "${0%/*}/common"
make -s conformance >out.txt || { cat out.txt; exit 1; }
sed -n '1p;4p' out.txt
grep -c '^layer [0-9]*: max rel' out.txt
make -s conformance COMPARE="$TINY/expected/sea.layers.npy" >out.txt 2>err
echo "exit $?"
grep -o 'shape [^/]*' err | head -n 1
