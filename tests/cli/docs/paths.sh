# SPDX-License-Identifier: Apache-2.0
# Files and folders of the tree that the pages name are there: a test that holds a promise in TRUST, the place where
# CONTRIBUTING says to add something.
repo=$(realpath "$FIXTURES/../..")
n=0
for page in "$repo"/README.md "$repo"/docs/*.md "$repo/examples/README.md"; do
    while IFS= read -r p; do
        n=$((n + 1))
        case $p in
        */[A-Z][A-Z]* | *[A-Z][A-Z]*.* | build/* | bin/*) ;; # a pattern such as tests/cli/TOOL/NAME.sh, or what is built
        *) compgen -G "$repo/$p" >/dev/null || echo "$(basename "$page"): $p is not there" ;;
        esac
    done < <(grep -v '^#' "$page" | grep -oE '`(tests|lib|cmd|scripts|man|docs|examples)/[A-Za-z0-9_./*-]*' | tr -d '`' | sort -u)
done
[ $n -gt 50 ] || echo "only $n paths found"
