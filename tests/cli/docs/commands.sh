# SPDX-License-Identifier: Apache-2.0
# The commands in the ```sh blocks of docs/ and examples/ run as they stand, page by page, in a folder with the small model, and succeed.
# One that needs the released checkpoint has a line before it with the words "needs the checkpoint"; inside a block
# that holds for the rest of the block. Commands of such a block are still checked to be valid shell, and the tools in it to exist.
repo=$(realpath "$FIXTURES/../..") build=$(realpath "$(dirname "$(command -v mkckpt)")/../..") bin=$(dirname "$(command -v k3-decode)")
unset MAKEFLAGS MAKELEVEL MFLAGS

# blocks PAGE run|skip: the commands
blocks() {
    awk -v which="$2" '
        /^```sh$/ { inside = 1; skip = marked; marked = 0; next }
        /^```/ { inside = 0; next }
        /needs the checkpoint/ && !inside { marked = 1; next }
        !inside { if (NF) marked = 0; next }
        /needs the checkpoint/ { skip = 1; next }
        (skip ? "skip" : "run") == which { print }
    ' "$1"
}

# what make install gives, for the pages that use the library
prefix=$PWD/prefix
make -s -C "$repo" -o all BUILD="$(realpath --relative-to="$repo" "$build")" BIN="$(realpath --relative-to="$repo" "$bin")" PREFIX="$prefix" install >install.log 2>&1 || { cat install.log; exit 1; }
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
nm "$build/libk3core.a" 2>/dev/null | grep -q __asan_init && cc() { command cc -fsanitize=address,undefined "$@"; } && export -f cc

n=0
for page in "$repo"/docs/*.md "$repo/examples/README.md"; do
    name=$(basename "$page" .md)
    mkdir -p "$name/tests/fixtures/tiny" "$name/build/tests"
    cp -r "$TINY/model" "$name/tests/fixtures/tiny/model"
    rm -f "$name/tests/fixtures/tiny/model/k3.index"
    ln -s ../tests/fixtures/tiny/model "$name/build/demo"
    for d in scripts docs; do ln -s "$repo/$d" "$name/$d"; done
    cp -r "$repo/examples" "$name" && rm -rf "$name/examples/out" # its Makefile writes there
    ln -s "$TINY/expected" "$name/tests/fixtures/tiny/expected"
    ln -s "$repo/tests/cli" "$name/tests/cli" && ln -s "$build/tests/tools" "$name/build/tests/tools" && ln -s "$bin" "$name/bin"
    blocks "$page" run >commands
    blocks "$page" skip >skipped
    n=$((n + $(wc -l <commands)))
    bash -n skipped || echo "$name: not valid shell"
    for t in $(grep -o '\bk3-[a-z]*\b\|scripts/[a-z0-9.-]*' skipped | sort -u); do
        command -v "$t" >/dev/null || [ -x "$repo/$t" ] || [ -x "$repo/scripts/$t" ] || [[ $t == k3-* && -e "$name/$t" ]] || echo "$name: there is no $t"
    done
    [ -s commands ] || continue
    (cd "$name" && K3_MODEL=tests/fixtures/tiny/model timeout 120 bash -e -o pipefail -x ../commands </dev/null) >out 2>err && continue
    echo "$name: exit $? from:"
    grep '^+' err | tail -n 1
    grep -v '^+' err | tail -n 3
done
[ $n -gt 10 ] || echo "only $n commands found in docs/"

# links between the pages and to files of the tree
for page in "$repo"/docs/*.md "$repo"/docs/data/*.md "$repo/README.md" "$repo/examples/README.md"; do
    grep -o '](\([^)#]*\))' "$page" | sed 's/^](//; s/)$//' | grep -v '^[a-z]*:' | while IFS= read -r link; do
        [ -e "$(dirname "$page")/$link" ] || echo "$(basename "$page"): $link is not there"
    done
done
