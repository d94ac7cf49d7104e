# SPDX-License-Identifier: Apache-2.0
# Descriptors that are closed, full or gone.
. "$(dirname "$0")/npy.bash"
export K3_MODEL=$ODD/model
{ npy '<f4' '3, 104'; floats 312; } >x.npy
k3-layer -q -l 0 <&- >out.npy; echo "exit $?"
k3-layer -q -l 0 <x.npy >&-; echo "exit $?"
k3-layer -q -l 0 <x.npy 2>&- >out.npy; echo "exit $?"
k3-layer -q -l 0 <x.npy >/dev/full; echo "exit $?"
k3-layer -q embed <<<'1 2' >/dev/full; echo "exit $?"
k3-layer -q -l 0 <x.npy | k3-layer -q head --layers 1 >/dev/full; echo "exit $?"
k3-layer -q -l 1 --part router --weights /dev/full <x.npy >out.npy; echo "exit $?"
k3-layer diff x.npy x.npy >/dev/full; echo "exit $?"
# The reader goes away: no error. The state does not move on without its output.
exec 3> >(:)
wait $!
k3-layer -q -l 0 --state s <x.npy >&3; echo "exit $?"
k3-layer diff x.npy x.npy >&3; echo "exit $?"
k3-layer -q -l 0 --state s <x.npy >/dev/full; echo "exit $?"
ls
# A state that cannot be written: exit 3.
k3-layer -q -l 0 --state no/folder/s <x.npy >out.npy; echo "exit $?"
k3-layer -q -l 0 --state /dev/full <x.npy >out.npy; echo "exit $?"
# Paths with blanks and newlines
mkdir 'a b
c' && cp -r "$ODD/model" 'a b
c/m' && k3-layer -q -l 0 -m 'a b
c/m' --state 'a b
c/s' <x.npy >out.npy && ls 'a b
c'
