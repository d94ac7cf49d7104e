# make install lays all out, the library is usable from there through pkg-config, uninstall leaves nothing
# shellcheck disable=SC2046
repo=$(realpath "$FIXTURES/../..") build=$(realpath "$(dirname "$(command -v mkckpt)")/../..") bin=$(dirname "$(command -v k3-decode)")
command -v pkg-config >/dev/null || { echo "pkg-config is not installed"; exit 77; }
unset MAKEFLAGS MAKELEVEL MFLAGS
san=
nm "$build/libk3core.a" 2>/dev/null | grep -q __asan_init && san=-fsanitize=address,undefined
# -o all: what is installed is what is being tested
run_make() { make -s -C "$repo" -o all BUILD="$(realpath --relative-to="$repo" "$build")" BIN="$(realpath --relative-to="$repo" "$bin")" DESTDIR="$PWD/a b" PREFIX=/opt/k3 "$1"; }
run_make install 2>&1
(cd "a b" && find . ! -type d | LC_ALL=C sort) | grep -v -e /include/ -e /man/ -e "doc/k3/.*\.md"
root="$PWD/a b/opt/k3"
for h in "$repo"/lib/*/k3_*.h; do [ -e "$root/include/k3/${h##*/}" ] || echo "no ${h##*/}"; done
for m in "$repo"/man/*.[1-9]; do [ -e "$root/share/man/man${m##*.}/${m##*/}" ] || echo "no ${m##*/}"; done
export PKG_CONFIG_PATH="$root/lib/pkgconfig"
pkg-config --modversion k3
"$root/bin/k3-decode" -V
ln -s "$root" k3 # no blank in what pkg-config prints
for h in k3/include/k3/k3_*.h; do echo "#include \"${h##*/}\""; done >all.c
cc $(pkg-config --define-variable=prefix="$PWD/k3" --cflags k3) -fsyntax-only -Wall all.c
cc $san "$root/share/doc/k3/embed.c" $(pkg-config --define-variable=prefix="$PWD/k3" --cflags --libs k3) -o embed || exit
./embed "$TINY/model" 7 84 257 1255 2>/dev/null
echo 84 257 1255 | k3-decode -q -m "$TINY/model" --gen 7
./embed "$TINY/model" 7 84 5000000 2>&1 >/dev/null | grep -v 'k3.index'
./embed nowhere 7 84
echo $?
run_make uninstall 2>&1
find "a b" ! -type d
