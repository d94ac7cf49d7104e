# SPDX-License-Identifier: Apache-2.0
# What the README and the tour show is what the programs print: every command of their console blocks, page by page in
# one shell, with its output.
mkdir build && cp -r "$TINY/model" build/demo && rm -f build/demo/k3.index
k3-index -q build/demo
for page in README.md docs/TOUR.md; do
    awk '/^```console$/ {inside = 1; next} /^```$/ {inside = 0} inside' "$FIXTURES/../../$page" >want
    echo "$page: $(grep -c '^\$ ' want)"
    : >script
    while IFS= read -r line; do
        [[ $line == '$ '* ]] || continue
        printf 'printf "%%s\\n" %q\n%s\n' "$line" "${line#$ }" >>script
    done <want
    bash script >have </dev/null
    diff want have
done
