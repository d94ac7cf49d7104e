# SPDX-License-Identifier: Apache-2.0
# What k3-pack says of a file that it took up again after kill -9 is what it says of one packed at one go: the holes of
# the file. Would catch the holes of the last run, which are fewer.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0"
shim=$(command -v mkckpt) && shim=${shim%/*}/shim_io.so
mkckpt -q --config "$ODD/model/config.json" --sparse m
k3-index -q m >/dev/null
said() { k3-pack m --tile 4Ki "$@" 2>&1 >/dev/null | grep -o '[0-9]* tiles, .* of it holes'; }
told() { k3-pack -q m --tile 4Ki --json "$@" >json && echo "$(jsonq json hole_bytes) of $(jsonq json file_bytes) are holes"; }
# Dies by SIGKILL in one of the last writes.
killed() {
    K3_FAULTS="write $1.part after=400 SIGKILL" LD_PRELOAD=$shim k3-pack -q m --tile 4Ki --io-depth 1 -o "$1" &
    wait $! 2>/dev/null; [ $? -eq 137 ] || echo "$1 was not killed"
    [ -e "$1.part" ] && [ ! -e "$1" ] || echo "$1.part is not there"
}
said -o whole
told -o whole2
killed t
said -o t
killed u
told -o u
[ "$(jsonq json tiles_kept)" -gt 300 ] || echo "$(jsonq json tiles_kept) tiles were kept"
cmp t whole
cmp u whole
