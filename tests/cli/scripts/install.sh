# SPDX-License-Identifier: Apache-2.0
# make install lays all out, the library is usable from there through pkg-config, uninstall leaves nothing
# shellcheck disable=SC2046
repo=$(realpath "$FIXTURES/../..") build=$(realpath "$(dirname "$(command -v mkckpt)")/../..") bin=$(dirname "$(command -v k3-decode)")
command -v pkg-config >/dev/null || { echo "pkg-config is not installed"; exit 77; }
unset MAKEFLAGS MAKELEVEL MFLAGS
san=
nm "$build/libk3core.a" 2>/dev/null | grep -q __asan_init && san=-fsanitize=address,undefined
# -o all: what is installed is what is being tested
run_make() { make -s -C "$repo" -o all "${@:2}" BUILD="$(realpath --relative-to="$repo" "$build")" BIN="$(realpath --relative-to="$repo" "$bin")" DESTDIR="$PWD/a b" PREFIX=/opt/k3 "$1"; }
mkdir -p "a b/opt" # is not ours, and stays
run_make install 2>&1
(cd "a b" && find . ! -type d | LC_ALL=C sort) | grep -v -e /include/ -e /man/ -e "doc/k3/.*\.md" -e docs/data/
root="$PWD/a b/opt/k3"
for h in "$repo"/lib/*/k3_*.h; do [ -e "$root/include/k3/${h##*/}" ] || echo "no ${h##*/}"; done
for m in "$repo"/man/*.[1-9]; do [ -e "$root/share/man/man${m##*.}/${m##*/}" ] || echo "no ${m##*/}"; done
export PKG_CONFIG_PATH="$root/lib/pkgconfig"
pkg-config --modversion k3
"$root/bin/k3-decode" -V | sed 's/ (commit [0-9a-f]*\(-dirty\)*)//'
ln -s "$root" k3 # no blank in what pkg-config prints
for h in k3/include/k3/k3_*.h; do echo "#include \"${h##*/}\""; done >all.c
cc $(pkg-config --define-variable=prefix="$PWD/k3" --cflags k3) -fsyntax-only -Wall all.c
cxx=$(command -v g++ || command -v clang++) && sed 's/\.c$/.cc/' all.c >all.cc && "$cxx" -std=c++11 -pedantic-errors $(pkg-config --define-variable=prefix="$PWD/k3" --cflags k3) -fsyntax-only -Wall -Wextra all.cc
grep -l _Atomic k3/include/k3/*.h
cc $san "$root/share/doc/k3/examples/embed.c" $(pkg-config --define-variable=prefix="$PWD/k3" --cflags --libs k3) -o embed || exit
./embed "$TINY/model" 7 84 257 1255 2>/dev/null
echo 84 257 1255 | k3-decode -q -m "$TINY/model" --gen 7
./embed "$TINY/model" 7 84 5000000 2>&1 >/dev/null | grep -v 'k3.index'
./embed nowhere 7 84
echo $?
echo "paths that installed pages and the doctor name:"
# every script or program, and every link of a page, is there
grep -rhoE "/opt/k3/[a-zA-Z0-9/._-]+|[^/]scripts/[a-z0-9-]+(\.sh)?" "$root/share/doc" "$root/share/man" "$root/bin/k3-doctor" | sed 's/\.$//; s/^[^/]*scripts/scripts/' | sort -u | while read -r p; do
    case $p in
    scripts/setup | scripts/demo | scripts/completions | scripts/install-tree) ;; # of a clone, and said to be
    *) [ -e "a b$p" ] || echo "$p is not there" ;;
    esac
done
find "$root/share/doc" -name '*.md' | while read -r page; do
    grep -o '](\([^)#]*\))' "$page" | sed 's/^](//; s/)$//' | grep -v '^[a-z]*:' | while IFS= read -r link; do
        [ -e "$(dirname "$page")/$link" ] || echo "${page##*/}: $link is not there"
    done
done
K3_MODEL="" "$root/bin/k3-doctor" --no-disk --json >j
eval "set -- $(jsonq j next)"
[ -x "$1" ] || echo "the doctor names $1"
"$root/bin/k3-doctor" --version
echo "uninstalled:"
run_make uninstall 2>&1
find "a b"
echo "elsewhere:"
run_make install LIBDIR=/opt/k3/lib64 MANDIR=/man DATADIR=/opt/data 2>&1
(cd "a b" && ls opt opt/k3 opt/k3/lib64 man/man1 | grep -v 'k3-')
PKG_CONFIG_PATH="$root/lib64/pkgconfig" pkg-config --variable=libdir k3
run_make uninstall LIBDIR=/opt/k3/lib64 MANDIR=/man DATADIR=/opt/data 2>&1
find "a b"
run_make uninstall 2>&1 | grep -c 'nothing is installed there'
