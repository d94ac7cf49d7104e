# SPDX-License-Identifier: Apache-2.0
# Every man page is clean mdoc and has the sections that a reader looks for.
command -v mandoc >/dev/null || { echo "mandoc is not installed"; exit 77; }
man=$FIXTURES/../../man
for page in "$man"/*.[1-9]; do
    mandoc -Tlint -Wwarning "$page"
    sections="NAME DESCRIPTION"
    case $page in *.1) sections="NAME SYNOPSIS DESCRIPTION OPTIONS EXIT.STATUS EXAMPLES SEE.ALSO" ;; esac
    for s in $sections; do
        grep -q "^\.Sh $s\$" "$page" || echo "$(basename "$page"): no section $s"
    done
done
