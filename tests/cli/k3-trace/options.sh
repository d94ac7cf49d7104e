# SPDX-License-Identifier: Apache-2.0
# the man page and --help of every command name the same options
for c in info cat hist cut merge import export sim plot synth verify; do
    k3-trace $c --help | sed -n '/^Options:/,$s/^  \(-.,\|   \) --\([a-z-]*\).*/\2 \1/p' | sed 's/ *,*$//' |
        grep -v -E '^(help|version|verbose|quiet) ' | LC_ALL=C sort >help
    sed -n "/^\.Ss $c\$/,/^\.S[hs] /s/^\.It //p" "$FIXTURES/../../man/k3-trace.1" |
        sed -n 's/^Fl \([a-zA-Z]\) , Fl Fl \([a-z-]*\).*/\2 -\1/p; s/^Fl Fl \([a-z-]*\).*/\1/p' | LC_ALL=C sort >page
    diff help page >differ || { echo "$c: --help (<), page (>)"; cat differ; }
done
exit 0
