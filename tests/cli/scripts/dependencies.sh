# SPDX-License-Identifier: Apache-2.0
# The parts of the library depend on each other in one direction (docs/ARCHITECTURE.md): a lower one never includes
# a header of a higher one, and lib/trace needs no weights.
lib=$FIXTURES/../../lib
check() { # PART, then the parts whose headers it may include
    local part=$1 file header owner
    shift
    for file in "$lib/$part"/*.[ch]; do
        for header in $(sed -n 's/^#include "\(k3_[a-z0-9_]*\.h\)".*/\1/p' "$file"); do
            owner=$(ls "$lib"/*/"$header") && owner=${owner%/*} && owner=${owner##*/}
            [[ " $part $* " == *" $owner "* ]] || echo "lib/$part/${file##*/} includes $header of lib/$owner"
        done
    done
}
check base
check spec base
check kernel base
check cache base
check text base
check trace base cache
check store base spec kernel
check model base spec kernel cache store
