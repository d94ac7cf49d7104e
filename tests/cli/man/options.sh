# SPDX-License-Identifier: Apache-2.0
# The help text and the man page of every program list the same long options, and the same short forms for them.
man=$FIXTURES/../../man
PATH=$PATH:$(realpath "$FIXTURES/../../scripts")
for page in "$man"/k3-*.1; do
    tool=$(basename "$page" .1)
    command -v "$tool" >/dev/null || { echo "$tool: a page without a program"; continue; }
    "$tool" --help | sed -n '/^Options:/,$s/^  \(-.,\|   \) --\([a-z-]*\).*/\2 \1/p' | sed 's/ *,*$//' | LC_ALL=C sort >help
    sed -n '/^\.Sh OPTIONS/,/^\.Sh ENVIRONMENT/s/^\.It //p' "$page" | tr ';' '\n' |
        sed -n 's/^ *//; s/^Fl \([a-zA-Z]\) , Fl Fl \([a-z-]*\).*/\2 -\1/p; s/^Fl Fl \([a-z-]*\).*/\1/p' | LC_ALL=C sort >page
    diff help page >differ || { echo "$tool: --help (<) and the page (>) list other options"; cat differ; }
done
exit 0
