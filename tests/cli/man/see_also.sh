# SPDX-License-Identifier: Apache-2.0
# The pages know each other: what a page mentions or what mentions it is in its SEE ALSO, in the order of sections.
cd "$FIXTURES/../../man" || exit
xr() { sed -n 's/^\.Xr \([^ ]*\) \([1-9]\).*/\1.\2/p'; }
for page in *.[1-9]; do
    sed -n '/^\.Sh SEE ALSO/,$p' "$page" | xr >"$OLDPWD/see"
    LC_ALL=C sort -t . -k 2,2 -k 1,1 "$OLDPWD/see" | cmp -s - "$OLDPWD/see" || echo "$page: not in order"
    for other in $( { xr <"$page"; for p in *.[1-9]; do xr <"$p" | grep -qx "$page" && echo "$p"; done; } | LC_ALL=C sort -u | grep '^k3'); do
        [ -e "$other" ] || echo "$page: there is no $other"
        [ "$other" = "$page" ] || grep -qx "$other" "$OLDPWD/see" || echo "$page: no $other in SEE ALSO"
    done
done
