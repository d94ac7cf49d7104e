# SPDX-License-Identifier: Apache-2.0
# Threads have stacks of a stated size: a limit of 128 KB, as some C libraries have by default, is enough for long prompts
# on every instruction set, in memory and streamed, with a scratch file, and for packing, verifying and layers.
# Would catch a buffer on the stack of a worker, and one that is too large on that of the main thread.
case $(ldd "$(command -v k3-decode)") in *libasan* | *libtsan*) echo "stacks under a sanitizer are larger"; exit 77 ;; esac
export K3_MODEL=$TINY/model
seq -s' ' 10 90 >prompt
k3-decode -q --gen 3 <prompt >want
for isa in scalar avx2 avx512; do
    grep -qw "${isa/avx512/avx512bw}" /proc/cpuinfo || [ $isa = scalar ] || continue
    for o in "" "--memory 20M --chunk 7" "--spill on --draft 3"; do
        # shellcheck disable=SC2086
        (ulimit -s 128; K3_ISA=$isa k3-decode -q --gen 3 --threads 3 $o <prompt) | cmp - want
    done
done
cp -r "$TINY/model" m
(ulimit -s 128; k3-index -q m && k3-index verify -q -m m --write-sums >verified && k3-pack -q m && k3-pack check -q -m m) || echo "exit $?"
(ulimit -s 128; k3-decode -q -m m --gen 3 <prompt) | cmp - want
